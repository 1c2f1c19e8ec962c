package main

import (
	"strings"
	"time"

	"github.com/IBM/sarama"

	"headrace.dev/interop/records"
)

// admin walks through the admin calls: what must work works, what must be refused is refused with Kafka's own error.
func admin(bootstrap string, args []string) error {
	config, err := newConfig()
	if err != nil {
		return err
	}
	client, err := sarama.NewClusterAdmin(strings.Split(bootstrap, ","), config)
	if err != nil {
		return err
	}
	defer client.Close()
	w := walk{client, args[0]}
	for _, step := range []func() error{w.creation, w.configs, w.partitions, w.logDirs, w.deletion} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

type walk struct {
	admin sarama.ClusterAdmin
	topic string
}

func (w walk) creation() error {
	retention := "3600000"
	detail := &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &retention}}
	if err := w.admin.CreateTopic(w.topic, detail, false); err != nil {
		return err
	}
	if err := records.Refused(w.admin.CreateTopic(w.topic, detail, false), sarama.ErrTopicAlreadyExists); err != nil {
		return err
	}
	listed, err := w.admin.ListTopics()
	if err != nil {
		return err
	}
	found, there := listed[w.topic]
	return records.Check(there && found.NumPartitions == 3, "ListTopics answered %+v", found)
}

func (w walk) configs() error {
	resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: w.topic, ConfigNames: []string{"retention.ms"}}
	entries, err := w.admin.DescribeConfig(resource)
	if err != nil {
		return err
	}
	if err := records.Check(len(entries) == 1 && entries[0].Value == "3600000", "DescribeConfigs answered %+v", entries); err != nil {
		return err
	}
	bytes := "65536"
	if err := w.admin.AlterConfig(sarama.TopicResource, w.topic, map[string]*string{"segment.bytes": nil, "max.message.bytes": &bytes}, false); err == nil {
		return records.Check(false, "a null config value was accepted")
	}
	if err := w.admin.AlterConfig(sarama.TopicResource, w.topic, map[string]*string{"max.message.bytes": &bytes}, false); err != nil {
		return err
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if entries, err = w.admin.DescribeConfig(resource); err != nil {
			return err
		}
		if entries[0].Value == "604800000" {
			return nil
		}
	}
	return records.Check(false, "AlterConfigs replaces all: retention.ms should be the default, not %s", entries[0].Value)
}

func (w walk) partitions() error {
	if err := w.admin.CreatePartitions(w.topic, 5, nil, false); err != nil {
		return err
	}
	described, err := w.admin.DescribeTopics([]string{w.topic})
	if err != nil {
		return err
	}
	return records.Check(len(described) == 1 && len(described[0].Partitions) == 5, "after adding two there are %d partitions", len(described[0].Partitions))
}

// logDirs waits until the new partitions are on disk, which Kafka promises for some time after CreatePartitions.
func (w walk) logDirs() error {
	brokers, _, err := w.admin.DescribeCluster()
	if err != nil {
		return err
	}
	node, known := brokers[0].ID(), 0
	for deadline := time.Now().Add(10 * time.Second); known < 5 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		dirs, err := w.admin.DescribeLogDirs([]int32{node})
		if err != nil {
			return err
		}
		known = 0
		for _, dir := range dirs[node] {
			for _, topic := range dir.Topics {
				if topic.Topic == w.topic {
					known += len(topic.Partitions)
				}
			}
		}
	}
	return records.Check(known == 5, "DescribeLogDirs knows %d of 5 partitions", known)
}

func (w walk) deletion() error {
	if err := w.admin.DeleteTopic(w.topic); err != nil {
		return err
	}
	return records.Refused(w.admin.DeleteTopic(w.topic), sarama.ErrUnknownTopicOrPartition)
}
