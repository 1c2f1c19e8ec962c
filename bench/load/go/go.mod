module headrace.dev/load

go 1.26.0

require (
	github.com/nats-io/nats.go v1.43.0
	github.com/rabbitmq/rabbitmq-stream-go-client v1.6.0
	github.com/twmb/franz-go v1.22.2
)

require (
	github.com/golang/snappy v1.0.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/kr/pretty v0.3.1 // indirect
	github.com/nats-io/nkeys v0.4.11 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/pierrec/lz4 v2.6.1+incompatible // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/spaolacci/murmur3 v1.1.0 // indirect
	github.com/twmb/franz-go/pkg/kmsg v1.15.0 // indirect
	golang.org/x/crypto v0.37.0 // indirect
	golang.org/x/sys v0.33.0 // indirect
)
