package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// newClient makes a client that speaks the protocol of the Kafka release in MAX_KAFKA_VERSION, or the newest it knows.
func newClient(bootstrap string, options ...kgo.Opt) (*kgo.Client, error) {
	options = append(options, kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	if release := os.Getenv("MAX_KAFKA_VERSION"); release != "" {
		versions := kversion.FromString(release)
		if versions == nil {
			return nil, fmt.Errorf("%s is no Kafka release that franz-go knows", release)
		}
		options = append(options, kgo.MaxVersions(versions))
	}
	return kgo.NewClient(options...)
}
