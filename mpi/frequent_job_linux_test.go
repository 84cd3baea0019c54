//go:build !muster_portable

package mpi_test

// Frequently used buffers, over the device of a job: the tests of strict mode need their
// own configuration, which a job does not allow. With a device that needs no registration
// the tests are skipped; tests/verbsvm runs them with one that does.

import (
	"fmt"
	"os"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
	"github.com/muster-mpi/muster/prof"
)

// inRegisteringJob runs fn as two ranks of a job whose device registers memory.
func inRegisteringJob(t *testing.T, fn func(t *testing.T, c *mpi.Comm, frequent string)) {
	if !mpitest.Launched() {
		t.Skip("about the device of a job")
	}
	frequent := os.Getenv("MUSTER_FREQUENT")
	if frequent == "" {
		frequent = "auto"
	}
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		rows, _, err := inspect.FrequentBuffers(c, 1-c.Rank())
		noError(t, err, "FrequentUse")
		if len(rows) == 0 && frequent != "never" {
			t.Logf("over %s no copy is made that registering would save", inspect.DeviceName(c, 1-c.Rank()))
			return
		}
		fn(t, c, frequent)
	})
}

func TestMessagesOfAJobArriveFromWhateverBuffer(t *testing.T) {
	inRegisteringJob(t, func(t *testing.T, c *mpi.Comm, frequent string) {
		before := decided(t, c)
		for _, size := range []int{1, 127, 128, 1000, 4096, 8192, 16000, 20000, 100_000} {
			swapOften(t, c, size, 30)
		}
		now := decided(t, c)
		direct := now.Direct - before.Direct
		if frequent == "always" && direct == 0 || frequent == "never" && direct > 0 {
			t.Errorf("%d messages were sent from where they are", direct)
		}
		rings := os.Getenv("MUSTER_EAGER") == "rings"
		if byRing := now.Ring - before.Ring; byRing > 0 && !rings || byRing == 0 && rings && frequent == "always" {
			t.Errorf("%d messages were written from where they are into a ring", byRing)
		}
		if now.Refused > before.Refused {
			t.Errorf("%d buffers could not be registered", now.Refused-before.Refused)
		}
		t.Logf("frequent=%s: %d messages from where they are, %d of them into a ring, %d copied", frequent, direct, now.Ring-before.Ring, now.Copied-before.Copied)
	})
}

// The buffers of collectives count in the same table, are registered once, and are then
// sent from without a copy, if registration pays off by the rule.
func TestCollectivesOfAJobUseOftenUsedBuffers(t *testing.T) {
	inRegisteringJob(t, func(t *testing.T, c *mpi.Comm, frequent string) {
		rows, _, err := inspect.FrequentBuffers(c, 1-c.Rank())
		noError(t, err, "FrequentBuffers")
		const rounds = 100
		for _, size := range []int{1000, 8000} {
			pays := uint32(0)
			for _, r := range rows {
				if r.Lo <= size && size <= r.Hi {
					pays = r.Isend
				}
			}
			before, made, hit := decided(t, c), ownCounter(c, prof.RegistrationsMissed), ownCounter(c, prof.RegistrationsHit)
			repeatCollectives(t, c, size, rounds, frequent == "always")
			now := decided(t, c)
			sent := now.Collective - before.Collective
			// The first half of the rounds may be needed to count uses, one of eight.
			if soon := pays > 0 && 8*(pays/4+1) < rounds/2; soon && sent < rounds/2 || pays == 0 && sent > 0 {
				t.Errorf("%d bytes, %d uses pay: collectives sent %d messages from where they are", size, pays, sent)
			}
			t.Logf("frequent=%s, collectives of %d bytes: %d uses pay; %d messages from where they are, %d of them into a ring, %d copied; %d registered, %d found registered", frequent, size, pays,
				sent, now.Ring-before.Ring, now.Copied-before.Copied, ownCounter(c, prof.RegistrationsMissed)-made, ownCounter(c, prof.RegistrationsHit)-hit)
		}
	})
}

// sendCalls are the calls whose buffers are counted, with the number of uses from which
// registration pays off.
var sendCalls = []struct {
	name string
	pays func(r inspect.BufferCost) uint32
	send func(c *mpi.Comm, buf []byte, peer int) error
}{
	{"Send", func(r inspect.BufferCost) uint32 { return r.Send },
		func(c *mpi.Comm, buf []byte, peer int) error { return mpi.Send(c, buf, peer, 1) }},
	{"Isend", func(r inspect.BufferCost) uint32 { return r.Isend },
		func(c *mpi.Comm, buf []byte, peer int) error {
			_, err := mpi.Isend(c, buf, peer, 1).Wait()
			return err
		}},
}

// For each call and length, buffers that are used once are copied, and a buffer that is
// used often is eventually sent without a copy, if registration pays off by the rule;
// otherwise never. Each rank expects results by its own estimate; the slower rank's
// estimate determines how often both send.
func TestAJobSendsOftenUsedBuffersFromWhereTheyAre(t *testing.T) {
	inRegisteringJob(t, func(t *testing.T, c *mpi.Comm, frequent string) {
		rows, _, err := inspect.FrequentBuffers(c, 1-c.Rank())
		noError(t, err, "FrequentUse")
		for _, call := range sendCalls {
			for _, size := range []int{1 << 10, 4 << 10, 8 << 10, 12_000} { // what goes in several packets is copied
				for _, r := range rows {
					if r.Lo <= size && size <= r.Hi {
						what := fmt.Sprintf("%s of %d bytes", call.name, size)
						swap := func(buf []byte) { swapBy(t, c, buf, call.send) }
						onceAndOften(t, c, what, size, int(call.pays(r)), swap)
					}
				}
			}
		}
		p, did := c.World().Profile(), decided(t, c)
		if got := p.Of(prof.BuffersDirect); got != did.Direct {
			t.Errorf("the profile counts %d messages from where they are, FrequentUse %d", got, did.Direct)
		}
	})
}

// onceAndOften checks the counters while buffers are used once and one is used often; pays
// is the number of uses from which registration pays off, 0 for never.
func onceAndOften(t *testing.T, c *mpi.Comm, what string, size, pays int, swap func([]byte)) {
	t.Helper()
	const seldom, after, limit = 40, 10, 4000
	most := []int{pays}
	noError(t, mpi.Allreduce(c, most, most, mpi.Max), "Allreduce")
	start := decided(t, c)
	once := make([]byte, seldom*size)
	for i := range seldom {
		swap(once[i*size:][:size])
	}
	seen := decided(t, c)
	copied, early := seen.Copied-start.Copied, seen.Direct-start.Direct
	switch {
	case pays == 0 && copied+early > 0:
		t.Errorf("%s never pays, yet of %d messages %d were counted", what, seldom, copied+early)
	case pays >= 8 && (copied != seldom || early > 0): // it registers at a quarter
		t.Errorf("%s: of %d messages from buffers of their own %d were copied and %d sent from there", what, seldom, copied, early)
	}
	if most[0] > limit {
		t.Logf("%s: a copy costs little more than a look at the table, so that %d uses pay, which nobody waits for", what, most[0])
		return
	}
	// When few of the buffers are used often, one message of eight is counted.
	often := make([]byte, size)
	for range 8*(most[0]/4+1) + 8 {
		swap(often)
	}
	seen = decided(t, c)
	for range after {
		swap(often)
	}
	now := decided(t, c)
	direct := now.Direct - seen.Direct
	if pays > 0 && direct != after || pays == 0 && direct > 0 {
		t.Errorf("%s, %d uses pay: of the last %d messages from one buffer %d were sent from there", what, pays, after, direct)
	}
	t.Logf("rank %d, %s: %d uses pay; %d used once: %d copied; one used often: %d from where it is", c.Rank(), what, pays, seldom, copied, now.Direct-start.Direct-early)
}

func decided(t *testing.T, c *mpi.Comm) inspect.BufferStats {
	t.Helper()
	_, did, err := inspect.FrequentBuffers(c, 1-c.Rank())
	noError(t, err, "FrequentUse")
	return did
}

// swapBy lets both ranks send a buffer to the other.
func swapBy(t *testing.T, c *mpi.Comm, buf []byte, send func(*mpi.Comm, []byte, int) error) {
	t.Helper()
	peer := 1 - c.Rank()
	buf[0]++
	recv := make([]byte, len(buf))
	in := mpi.Irecv(c, recv, peer, 1)
	noError(t, send(c, buf, peer), "the send")
	_, err := in.Wait()
	noError(t, err, "Irecv")
	if recv[0] != buf[0] { // both count alike
		t.Fatalf("the message begins with %d, want %d", recv[0], buf[0])
	}
}
