package sim

// Machines of documents that algorithms come from (docs/references.md), as far as their texts
// describe them. They show what a figure becomes on such a machine, not what it was.

// FindMachine returns the machine with a name, nil if there is none.
func FindMachine(name string) *Machine {
	switch name {
	case "assumed":
		return Default()
	case "qsnet2":
		return &Machine{
			About: "T2 3.2: 4 nodes with 4 processors of 1.4 GHz and two rails of QsNetII, of 335 MB/s in each direction when both are busy, and 2.5 µs; copies assumed",
			Nodes: 4, Rails: 2, Cores: 4,
			Near: Level{L: 700, O: Curve{{0, 300}, {8 << 10, 8500}, {1 << 20, 1_050_000}}, Eager: 2 << 10},
			Far:  Level{L: 1500, O: Curve{{0, 500}, {1 << 20, 600}}, Gap: 100, G: 3, Eager: 4 << 10},
			Copy: 0.9, Reduce: 1, Memory: 0.6, // Stripe is 0: a port is a rail, as in T2's equations
		}
	case "connectx":
		return &Machine{
			About: "T2 5.3: 4 nodes with 4 cores of 2.8 GHz and one port of ConnectX, of 1.6 GB/s and 1.2 µs (T1 3.3); copies assumed",
			Nodes: 4, Rails: 1, Cores: 4,
			Near: Level{L: 300, O: Curve{{0, 200}, {8 << 10, 3500}, {1 << 20, 450_000}}, Eager: 8 << 10},
			Far:  Level{L: 700, O: Curve{{0, 250}, {1 << 20, 400}}, Gap: 60, G: 0.625, Eager: 8 << 10},
			Copy: 0.4, Reduce: 0.6, Memory: 0.25,
		}
	}
	return nil
}
