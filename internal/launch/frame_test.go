//go:build !windows

package launch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

func TestFrameRoundTrip(t *testing.T) {
	var wire []byte
	frames := []frame{
		{frameReport, 3, []byte{}},
		{frameOutput, 0, outputBody(7, true, []byte("line\n"))},
		{frameSignal, everyHost, signalBody(syscall.SIGTERM)},
	}
	for _, f := range frames {
		wire = appendFrame(wire, f)
	}
	r := bytes.NewReader(wire)
	for _, want := range frames {
		if got, err := readFrame(r); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v came as %v, %v", want, got, err)
		}
	}
	if _, err := readFrame(r); err != io.EOF {
		t.Errorf("the end between two frames is io.EOF: %v", err)
	}
	for _, cut := range []int{1, frameHead, len(wire) - 1} {
		r := bytes.NewReader(wire[:cut])
		var err error
		for err == nil {
			_, err = readFrame(r)
		}
		if cut != frameHead && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	for _, bad := range []string{"GET / HTTP/1.1\r\n", "\x00\x00\x00\x02xxxxxxxx", "\x00\x00\x00\x05\xff\x00\x00\x00\x00"} {
		if f, err := readFrame(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "invalid frame header") {
			t.Errorf("%q must be rejected: %v, %v", bad, f, err)
		}
	}
}

func TestBodyRoundTrip(t *testing.T) {
	dead := spans{{3, 3}, {70000, 70063}}
	if ranks, host, status, err := readDeath(deathBody(dead, "h", "exit status 3")); err != nil || !reflect.DeepEqual(ranks, dead) || host != "h" || status != "exit status 3" {
		t.Errorf("a death: %v, %s, %s, %v", ranks, host, status, err)
	}
	event := pmi.Event{Rank: 5, Phase: pmi.PhaseAborted, Code: -3, Why: "a reason\n", Unreachable: true, Peer: 7}
	if got, err := readEvent(eventBody(event)); err != nil || got != event {
		t.Errorf("an event: %v, %v", got, err)
	}
	for _, end := range []ending{{code: 9}, {signal: syscall.SIGKILL}, {err: errors.New("lost")}} {
		rank, got, err := readExited(exitedBody(4, end))
		if err != nil || rank != 4 || got.String() != end.String() {
			t.Errorf("%v came as %v, %v", end, got, err)
		}
	}
	rows := []rankRow{
		{Row: pmi.Row{Rank: 1}},
		{Row: pmi.Row{Rank: 2, State: pmi.RowRunning, Progress: 9, Since: 200, Started: true, PID: 77}, process: processState{77, 'S', time.Second},
			resident: 4096, kernel: "R, S ep_poll", counted: true, counters: pmi.Metrics{MessagesSent: 1, Memory: 1 << 40}},
		{Row: pmi.Row{Rank: 3, State: pmi.RowWaiting, Progress: 1 << 40, Since: 100,
			Wait: pmi.WaitState{Op: "Recv", Comm: "world", Peer: pmi.PeerAny, Tag: -2, Context: 1 << 31, Sending: true, Since: 100}}},
	}
	number, got, err := readRows(rowsBody(6, rows, 1000), 5000)
	rows[1].Since, rows[2].Since, rows[2].Wait.Since = 4200, 4100, 4100 // the same ages by another clock
	if err != nil || number != 6 || !reflect.DeepEqual(got, rows) {
		t.Errorf("rows: %+v, %v", got, err)
	}
	p := pulse{progress: 12, waiting: 3, moving: true, noticed: 5}
	if got, err := readPulse(p.body()); err != nil || got != p {
		t.Errorf("a pulse: %+v, %v", got, err)
	}
	if n, v, ok, err := readAnswer(answerBody(8, "value", true)); n != 8 || v != "value" || !ok || err != nil {
		t.Errorf("an answer: %d %q %v %v", n, v, ok, err)
	}
}

func TestValuesBodies(t *testing.T) {
	var values []pmi.Pair
	for i := range 2000 {
		values = append(values, pmi.Pair{Key: strings.Repeat("k", i%60+1), Value: strings.Repeat("v", 1024)})
	}
	bodies := valuesBodies(values)
	var got []pmi.Pair
	for _, b := range bodies {
		if len(b) > maxFrame/2 {
			t.Errorf("a body of %d bytes", len(b))
		}
		part, err := readValues(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, part...)
	}
	if len(bodies) < 2 || !reflect.DeepEqual(got, values) {
		t.Errorf("%d values came as %d, in %d frames", len(values), len(got), len(bodies))
	}
}

// FuzzFrames checks that reading terminates on any input, and that a decoded frame is
// encoded to the same bytes.
func FuzzFrames(f *testing.F) {
	f.Add(appendFrame(nil, frame{frameEvent, 1, eventBody(pmi.Event{Rank: 3, Why: "x"})}))
	f.Add(appendFrame(nil, frame{frameRows, 1, rowsBody(1, []rankRow{{Row: pmi.Row{State: pmi.RowWaiting}}}, 0)}))
	f.Add(appendFrame(nil, frame{frameValues, 1, valuesBodies([]pmi.Pair{{Key: "a", Value: "b"}})[0]}))
	f.Add(appendFrame(nil, frame{frameReport, 1, someReport().body()}))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := bytes.NewReader(wire)
		for {
			at := len(wire) - r.Len()
			fr, err := readFrame(r)
			if err != nil {
				return
			}
			if again := appendFrame(nil, fr); !bytes.Equal(again, wire[at:at+len(again)]) {
				t.Fatalf("%q was read as %v, which is %q", wire[at:], fr, again)
			}
			readDeath(fr.body)
			readEvent(fr.body)
			readValues(fr.body)
			readAnswer(fr.body)
			readGet(fr.body)
			readOutput(fr.body)
			readExited(fr.body)
			readRows(fr.body, 0)
			readPulse(fr.body)
			readSignal(fr.body)
			readReport(fr.body, 1000, 10)
			readBlock(fr.body)
		}
	})
}

// FuzzAgentLine checks that the reader limits the output before an agent's greeting.
func FuzzAgentLine(f *testing.F) {
	f.Add([]byte("Welcome\nmuster-agent 1 key\nrest"))
	f.Add([]byte("muster-agent \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		noise, err := awaitAgentLine(bufio.NewReader(bytes.NewReader(text)), "key")
		if err == nil && !bytes.Contains(text, []byte("muster-agent 1 key\n")) && !bytes.Contains(text, []byte("muster-agent 1 key")) {
			t.Errorf("%q was accepted as a greeting", text)
		}
		if len(noise) > maxNoise+64<<10 {
			t.Errorf("%d bytes of noise were read", len(noise))
		}
	})
}

func TestWindow(t *testing.T) {
	w := newWindow()
	if !w.take(windowBytes) {
		t.Fatal("an empty window must accept a full window")
	}
	went := make(chan bool, 1)
	go func() { went <- w.take(1) }()
	select {
	case <-went:
		t.Error("a full window must block")
	case <-time.After(20 * time.Millisecond):
	}
	w.acknowledge(windowBytes)
	if !<-went {
		t.Error("an empty window must not block")
	}
	w.acknowledge(1)
	if !w.take(10 * windowBytes) {
		t.Error("data longer than the window must be accepted alone")
	}
	go func() { went <- w.take(1) }()
	w.close()
	if <-went {
		t.Error("a closed window must end the wait and accept nothing")
	}
}
