package groups

// TCP and software iWARP on the loopback of this machine, and the start of a job on hosts.

import "github.com/muster-mpi/muster/bench/results"

// networkPlan compares with the bare libfabric provider, and with the peers over TCP.
func networkPlan() []*group {
	const onNet = "Both use libfabric's provider net, which is TCP, on the loopback of this machine."
	rd := overIWARP("rd", "reliable datagrams over UDP", 0.65, 0.65, 1, 1)
	rd.claims = []results.Claim{{Text: "latency, software iWARP on loopback", Tables: "iwarp-*"}}
	return []*group{
		group{
			name: "ofi-latency", title: "Half round trip compared with bare libfabric, two ranks, provider net", ranks: 2,
			transport: transport{over: network}, peers: []contender{bare}, note: onNet,
			quantity: latencyMicros,
			claims:   []results.Claim{{Text: "latency over bare libfabric"}},
		}.loop("latency", 0, []float64{1.25, 1.15}, size8, size8K),
		group{
			name: "ofi-bw", title: "Bandwidth compared with bare libfabric, window of 64, provider net", ranks: 2,
			transport: transport{over: network}, peers: []contender{bare}, note: onNet,
			quantity: bandwidthGB,
		}.loop("bw", 0, []float64{0.95}, size1M),
		group{
			name: "tcp", title: "Half round trip over TCP on loopback, two ranks", ranks: 2,
			transport: transport{over: network}, peers: []contender{openMPI, mpich}, note: "Ours uses libfabric's provider net.",
			quantity: latencyMicros,
			claims:   []results.Claim{{Text: "latency, libfabric over TCP"}},
		}.loop("latency", 0, []float64{1, 1, 1}, size8, size8K, size1M),
		rd,
		overIWARP("rc", "RDMA over TCP", 1, 1, 1, 1),
		overIWARP("hybrid", "datagrams, and connections to busy peers: the default", 0.7, 0.9, 0.7, 1),
	}
}

// overIWARP returns the latency group of a channel of software iWARP; bounds are those of 8
// B, 8 KB, 64 KB and 1 MB.
func overIWARP(channel, what string, bounds ...float64) *group {
	return group{
		name: "iwarp-" + channel, title: "Half round trip over software iWARP on loopback (channel " + channel + "), two ranks", ranks: 2,
		transport: transport{over: network, channel: channel}, peers: []contender{openMPI, mpich}, note: "Ours is " + what + "; the peers use TCP.",
		quantity: latencyMicros,
	}.loop("latency", 0, bounds, size8, size8K, size64K, size1M)
}

// startPlan is about the first message of a job on several hosts.
func startPlan() []*group {
	const onHosts = "The hosts are network namespaces of this machine, connected by a switch; all ranks share its cores. Every rank sends one message to the next and receives one from the previous rank."
	return []*group{
		{
			name: "hosts-start", title: "From the start of the launcher to the first message of the last of 64 ranks, 4 hosts", ranks: 64,
			transport: transport{over: hosts, hosts: 4}, note: onHosts,
			ours: "first-message --since {now}", quantity: quantity{metric: "first-message", unit: "s", scale: 1, shown: "s"},
			lines:  []line{{title: "64 ranks", size: 0, bound: 2}},
			claims: []results.Claim{{Text: "four hosts: start of 64 ranks to first message, s"}},
		},
		{
			name: "hosts-cards", onRequest: true, title: "Business cards that a rank fetched for it, maximum", ranks: 64,
			transport: transport{over: hosts, hosts: 4}, note: onHosts + " It needs the card of the rank that it sends to.",
			ours: "first-message --since {now}", quantity: quantity{metric: "cards", unit: "cards", scale: 1, shown: "cards"},
			lines: []line{{title: "64 ranks", size: 0, bound: 1}},
		},
	}
}
