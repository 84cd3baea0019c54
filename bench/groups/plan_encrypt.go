package groups

import (
	"fmt"

	"github.com/muster-mpi/muster/bench/results"
)

// encryptPlan compares encrypted messages between two hosts with plain ones and with the
// cipher by itself: encryption is done well if it costs little more than the cipher.
func encryptPlan() []*group {
	first := encryptedBandwidth("encrypt-bw", "hybrid")
	first.claims = []results.Claim{{Text: "two hosts: encrypted messages relative to what the cipher on one core allows", Tables: "encrypt-bw,encrypt-bw-rd,encrypt-latency,encrypt-latency-rd", Rows: "B$"}}
	return []*group{
		first,
		encryptedBandwidth("encrypt-bw-rd", "rd"),
		encryptedLatency("encrypt-latency", "hybrid"),
		encryptedLatency("encrypt-latency-rd", "rd"),
	}
}

// cipherShare is the part of what the cipher allows that must be reached.
const cipherShare = 0.8

func encryptedBandwidth(name, channel string) *group {
	return encrypt(&group{
		name: name, title: fmt.Sprintf("Bandwidth of encrypted messages between two hosts on an unlimited cable, window of 64, channel %s", channel),
		args: "--sizes 1048576", ours: "bw --sizes 1048576 --iterations 40",
		quantity: bandwidthMB,
		lines:    sizeLines([]float64{cipherShare}, size1M),
	}, channel)
}

func encryptedLatency(name, channel string) *group {
	return encrypt(&group{
		name: name, title: fmt.Sprintf("Half round trip of encrypted messages between two hosts, channel %s", channel),
		args: "--sizes 8", ours: "latency --sizes 8 --iterations 10000",
		quantity: latencyMicros,
		lines:    sizeLines([]float64{1 / cipherShare}, size8),
	}, channel)
}

// encrypt makes a group one of encrypted messages between two hosts.
func encrypt(g *group, channel string) *group {
	onTwoHosts(g)
	g.rate, g.channel, g.encrypt, g.alone = "", channel, true, true
	g.peers, g.added = []contender{plain, gcm}, true
	g.note = "The hosts are network namespaces of this machine, with a cable without a limit; both ranks share its cores. AES-128-GCM is the cipher of the Go library alone on one core (`muster bench cipher`): the bandwidth of sealing, or the time to seal and open one message. " +
		"The ratio is to what is in the column before it, the figure of a core that does the work of a plain message and then that of the cipher."
	return g
}
