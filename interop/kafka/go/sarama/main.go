// sarama COMMAND BOOTSTRAP …: sarama against any broker; records in and out as JSON lines, offsets, admin calls.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"headrace.dev/interop/records"
)

func main() {
	records.Main(map[string]records.Command{"write": write, "read": read, "offsets": offsets, "admin": admin})
}

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

// newConfig speaks the protocol of the Kafka release in MAX_KAFKA_VERSION, or the newest that sarama knows.
func newConfig() (*sarama.Config, error) {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	if release := os.Getenv("MAX_KAFKA_VERSION"); release != "" {
		version, err := sarama.ParseKafkaVersion(release)
		if err != nil {
			return nil, err
		}
		config.Version = version
	}
	config.Producer.Return.Successes = true
	return config, secure(config)
}

// write sends standard input's records with the idempotent producer.
func write(bootstrap string, args []string) error {
	topic, compression := args[0], args[1]
	input, err := records.Read()
	if err != nil {
		return err
	}
	config, err := newConfig()
	if err != nil {
		return err
	}
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
	config.Producer.Compression = codecs[compression]
	config.Producer.MaxMessageBytes = 8 << 20
	config.Producer.Partitioner = sarama.NewManualPartitioner
	producer, err := sarama.NewSyncProducer(strings.Split(bootstrap, ","), config)
	if err != nil {
		return err
	}
	defer producer.Close()
	var batch []*sarama.ProducerMessage
	for _, r := range input {
		message := &sarama.ProducerMessage{Topic: topic, Partition: r.Partition, Timestamp: time.UnixMilli(r.Timestamp)}
		if r.Key != nil {
			message.Key = sarama.ByteEncoder(r.Key)
		}
		if r.Value != nil {
			message.Value = sarama.ByteEncoder(r.Value)
		}
		for _, header := range r.Headers {
			message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(header.Key), Value: header.Value})
		}
		batch = append(batch, message)
	}
	if err := producer.SendMessages(batch); err != nil {
		return err
	}
	last := map[int32]int64{}
	for _, message := range batch {
		before, seen := last[message.Partition]
		if seen && message.Offset != before+1 {
			return fmt.Errorf("offsets of %s-%d jumped from %d to %d", topic, message.Partition, before, message.Offset)
		}
		last[message.Partition] = message.Offset
	}
	return nil
}

// read prints every record of the topics, from the beginning to the end that each partition has now.
func read(bootstrap string, topics []string) error {
	config, err := newConfig()
	if err != nil {
		return err
	}
	client, err := sarama.NewClient(strings.Split(bootstrap, ","), config)
	if err != nil {
		return err
	}
	defer client.Close()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return err
	}
	defer consumer.Close()
	for _, topic := range topics {
		partitions, err := client.Partitions(topic)
		if err != nil {
			return err
		}
		for _, partition := range partitions {
			if err := readPartition(client, consumer, topic, partition); err != nil {
				return err
			}
		}
	}
	return nil
}

func readPartition(client sarama.Client, consumer sarama.Consumer, topic string, partition int32) error {
	end, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
	if err != nil || end == 0 {
		return err
	}
	reading, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer reading.Close()
	limit := time.After(30 * time.Second)
	for next := int64(0); next < end; {
		select {
		case message := <-reading.Messages():
			out := records.Record{Topic: topic, Partition: partition, Offset: message.Offset, Timestamp: message.Timestamp.UnixMilli(), Key: message.Key, Value: message.Value}
			for _, header := range message.Headers {
				out.Headers = append(out.Headers, records.Header{Key: string(header.Key), Value: header.Value})
			}
			if err := records.Print(out); err != nil {
				return err
			}
			next = message.Offset + 1
		case <-limit:
			return fmt.Errorf("the end of %s-%d was not reached in 30 s", topic, partition)
		}
	}
	return nil
}

// offsets looks up earliest, latest or the first offset at or after a time.
func offsets(bootstrap string, args []string) error {
	topic, which := args[0], args[1]
	config, err := newConfig()
	if err != nil {
		return err
	}
	client, err := sarama.NewClient(strings.Split(bootstrap, ","), config)
	if err != nil {
		return err
	}
	defer client.Close()
	at := map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest}
	if _, known := at[which]; !known {
		if at[which], err = strconv.ParseInt(which, 10, 64); err != nil {
			return err
		}
	}
	partitions, err := client.Partitions(topic)
	if err != nil {
		return err
	}
	found := map[int32]int64{}
	for _, partition := range partitions {
		if found[partition], err = client.GetOffset(topic, partition, at[which]); err != nil {
			return err
		}
	}
	return records.PrintOffsets(found)
}
