// Command descheduler is the descheduler's own command, outside a pod.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"sigs.k8s.io/descheduler/cmd/descheduler/app"
	"sigs.k8s.io/descheduler/pkg/descheduler/client"
)

func main() {
	// It reads the cluster's authority from where a pod finds it, even for a Prometheus without TLS.
	client.K8sPodCAFilePath = os.Getenv("POD_CA_FILE")
	command := app.NewDeschedulerCommand(os.Stdout)
	command.AddCommand(app.NewVersionCommand())
	os.Exit(cli.Run(command))
}
