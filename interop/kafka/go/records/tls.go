package records

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS trusts the authorities in the PEM file that TLS_CA names.
func TLS() (*tls.Config, error) {
	pem, err := os.ReadFile(os.Getenv("TLS_CA"))
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", os.Getenv("TLS_CA"))
	}
	return &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}, nil
}
