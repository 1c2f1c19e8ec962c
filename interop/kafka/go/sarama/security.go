package main

import (
	"os"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"headrace.dev/interop/records"
)

// conversation is the SCRAM client that sarama asks its users to bring.
type conversation struct {
	*scram.ClientConversation
	hash scram.HashGeneratorFcn
}

func (c *conversation) Begin(user, password, authorization string) error {
	client, err := c.hash.NewClient(user, password, authorization)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}

// secure reads TLS_CA (a PEM file), SASL_MECHANISM, SASL_USER and SASL_PASSWORD: how a secured broker is reached.
func secure(config *sarama.Config) error {
	if os.Getenv("TLS_CA") != "" {
		tls, err := records.TLS()
		if err != nil {
			return err
		}
		config.Net.TLS.Enable, config.Net.TLS.Config = true, tls
	}
	mechanism := os.Getenv("SASL_MECHANISM")
	if mechanism == "" {
		return nil
	}
	sasl := &config.Net.SASL
	sasl.Enable, sasl.Mechanism = true, sarama.SASLMechanism(mechanism)
	sasl.User, sasl.Password = os.Getenv("SASL_USER"), os.Getenv("SASL_PASSWORD")
	hashes := map[string]scram.HashGeneratorFcn{"SCRAM-SHA-256": scram.SHA256, "SCRAM-SHA-512": scram.SHA512}
	if hash, found := hashes[mechanism]; found {
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &conversation{hash: hash} }
	}
	return nil
}
