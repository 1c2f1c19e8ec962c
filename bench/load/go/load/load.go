// Package load holds what the Go load programs share: options, timings, payload bytes and one JSON line as the answer.
package load

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// Options are the flags every kind of load takes; a flag that a kind does not use is ignored by it.
type Options struct {
	Address   string
	Topic     string
	Group     string
	Consumers int
	Records   int
	Seconds   int
	Size      int
	InFlight  int
	Batch     int
	Rate      int
	WarmUp    int
	TimeLimit int
}

// Kind is one load: it runs within the time limit and returns its figures.
type Kind func(Options) (map[string]any, error)

// Main runs the kind named on the command line and prints its answer.
func Main(kinds map[string]Kind) {
	if len(os.Args) < 2 || kinds[os.Args[1]] == nil {
		fail(fmt.Errorf("usage: %s produce|consume|latency|delete --address HOST:PORT --topic NAME [--option value …]", os.Args[0]))
	}
	var o Options
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.StringVar(&o.Address, "address", "", "HOST:PORT of the broker")
	flags.StringVar(&o.Topic, "topic", "", "stream to use")
	flags.StringVar(&o.Group, "group", "", "share group to join")
	flags.IntVar(&o.Consumers, "consumers", 1, "members of the share group")
	flags.IntVar(&o.Records, "records", 0, "how many records")
	flags.IntVar(&o.Seconds, "seconds", 0, "how long, when no number of records is given")
	flags.IntVar(&o.Size, "size", 100, "bytes of each record")
	flags.IntVar(&o.InFlight, "in-flight", 10000, "records that may wait for their acknowledgement")
	flags.IntVar(&o.Batch, "batch-records", 1000, "records in a batch")
	flags.IntVar(&o.Rate, "rate", 1000, "records a second")
	flags.IntVar(&o.WarmUp, "warm-up", 2, "seconds before measuring")
	flags.IntVar(&o.TimeLimit, "time-limit", 60, "seconds after which the load gives up")
	_ = flags.Parse(os.Args[2:])
	time.AfterFunc(time.Duration(2*o.TimeLimit)*time.Second, func() {
		fail(fmt.Errorf("the load did not end within twice its time limit"))
	})
	answer, err := kinds[os.Args[1]](o)
	if err != nil {
		fail(err)
	}
	answer["errors"] = 0
	line, err := json.Marshal(answer)
	if err != nil {
		fail(err)
	}
	fmt.Println(string(line))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Deadline is when the load must have ended.
func (o Options) Deadline() time.Time {
	return time.Now().Add(time.Duration(o.TimeLimit) * time.Second)
}

// More tells a producer whether to send record number sent, given when the load began.
func (o Options) More(sent int, start time.Time) bool {
	if o.Records > 0 {
		return sent < o.Records
	}
	return sent%64 != 0 || time.Since(start) < time.Duration(o.Seconds)*time.Second
}

const starts = 65536

// Payload gives records of text-like bytes that differ from one another and are the same in every run.
type Payload struct {
	bytes []byte
	size  int
}

// NewPayload makes records of the given size.
func NewPayload(size int) Payload {
	bytes := make([]byte, size+starts)
	state := uint32(2463534242)
	for i := range bytes {
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		bytes[i] = "abcdefghijklmnopqrstuvwxyz012345"[state&31]
	}
	return Payload{bytes, size}
}

// Record is the payload of record number n; it must not be changed.
func (p Payload) Record(n int) []byte { return p.bytes[n%starts : n%starts+p.size] }

// Throughput is the answer of a produce or consume load.
func Throughput(records int, bytes int64, elapsed time.Duration) map[string]any {
	seconds := elapsed.Seconds()
	return map[string]any{"records": records, "bytes": bytes, "seconds": seconds, "per_second": float64(records) / seconds}
}

var epoch = time.Now()

// Pace is a latency load: records leave at a fixed rate, and those that arrive after the warm-up are timed.
type Pace struct {
	received    atomic.Int64
	measureFrom int64
	timings     []int64
	total       int64
	Done        chan struct{}
}

// NewPace prepares a latency load.
func NewPace(o Options) *Pace {
	return &Pace{total: int64(o.Rate * (o.WarmUp + o.Seconds)), measureFrom: math.MaxInt64, Done: make(chan struct{})}
}

// Run sends at the fixed rate; each record begins with the time of its sending.
func (p *Pace) Run(o Options, send func([]byte) error) error {
	p.measureFrom = int64(time.Since(epoch)) + int64(o.WarmUp)*int64(time.Second)
	payload, start := NewPayload(o.Size), time.Now()
	for n := int64(0); n < p.total; n++ {
		time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / time.Duration(o.Rate))))
		value := append([]byte(nil), payload.Record(int(n))...)
		binary.LittleEndian.PutUint64(value, uint64(time.Since(epoch)))
		if err := send(value); err != nil {
			return err
		}
	}
	select {
	case <-p.Done:
		return nil
	case <-time.After(10 * time.Second):
		return fmt.Errorf("%d of %d records arrived within 10 s of the last send", p.received.Load(), p.total)
	}
}

// Arrived notes one record; calls come from one goroutine.
func (p *Pace) Arrived(value []byte) {
	sent := int64(binary.LittleEndian.Uint64(value))
	if sent >= p.measureFrom {
		p.timings = append(p.timings, int64(time.Since(epoch))-sent)
	}
	if p.received.Add(1) == p.total {
		close(p.Done)
	}
}

// Answer is the latency figures, once Run has returned.
func (p *Pace) Answer(o Options) map[string]any {
	slices.Sort(p.timings)
	at := func(percentile float64) float64 {
		rank := int(math.Ceil(percentile / 100 * float64(len(p.timings))))
		return float64(p.timings[max(rank, 1)-1]) / 1e6
	}
	return map[string]any{"records": p.received.Load(), "seconds": o.Seconds, "p50_ms": at(50), "p99_ms": at(99), "max_ms": at(100)}
}
