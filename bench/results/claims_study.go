package results

// studySection lists the claims about applications: the studies of "muster bench study".
func studySection() Section {
	return Section{
		Title: "Applications", Page: StudiesPage,
		Note: `Each row is a study: applications with a technique and without it, in alternating rounds. × is the time or memory with it divided by that without. Each table says
where the result differs from the document, and why.`,
		Claims: []Claim{
			{Source: "t1", Where: "fig. 4.17", Text: "speculation: wait time of CG, which never gains, at most 4 % longer with adaptation, and 21 % without", Tables: "study-speculation", Rows: "^cg .*wait time", Column: ratio},
			{Source: "t1", Where: "fig. 4.17", Text: "wait time 5 % shorter in LU, 4 % in radix sort", Tables: "study-speculation", Rows: "^(lu|radix) .*wait time.*auto", Column: ratio},
			{Source: "t1", Where: "fig. 4.17", Text: "30 % shorter in BT; here in MG, which has its pattern", Tables: "study-speculation", Rows: "^mg .*wait time.*auto", Column: ratio},
			{Source: "t1", Where: "5.5.2", Text: "frequently used buffers: send time of LU −18 %", Tables: "study-reuse", Rows: "^lu .*send time.*always", Column: ratio},
			{Source: "t1", Where: "5.5.2", Text: "CG, which gains nothing, less than 1 % slower; the same of our other applications", Tables: "study-reuse", Rows: "auto over never", Column: ratio},
			{Source: "t1", Where: "table 6.1", Text: "datagrams: radix sort needs 31 % less memory with 64 processes (here: for communication)", Tables: "study-channel-memory", Rows: "^radix .*communication memory.*ud over rc", Column: ratio, Op: AtMost, Limit: 0.693},
			{Source: "t1", Where: "6.6.2", Text: "radix sort up to 45 % faster", Tables: "study-channel-memory", Rows: "^radix .*run time.*ud over rc", Column: ratio, Op: AtMost, Limit: 0.55},
			{Text: "memory of the hybrid channel with that of the kernel at most a quarter of connections", Tables: "study-channel-memory", Rows: "memory with kernel.*hybrid over rc", Column: ratio},
			{Source: "t2", Where: "table 4.1", Text: "node-aware allgather: communication ×1.47 in radix sort, ×1.09 in N-body", Tables: "study-node-collectives", Rows: "^(radix|nbody) .*time in MPI.*, node-", Column: ratio},
			{Source: "t2", Where: "table 4.1", Text: "run time ×1.13 and ×1.01", Tables: "study-node-collectives", Rows: "^(radix|nbody) .*run time.*, node-", Column: ratio},
			{Text: "the default choice is not slower in radix sort, N-body and FT", Tables: "study-node-collectives", Rows: "time in the calls.*default", Column: ratio},
			{Source: "t2", Where: "table 6.2", Text: "arrival-aware alltoall in FT: ×1.14 over MVAPICH's", Tables: "study-arrival", Rows: "^ft .*time in the calls.*over pairwise", Column: ratio, Op: AtMost, Limit: 0.877},
			{Source: "t2", Where: "table 6.2", Text: "×1.42 over Direct, and ×1.63 in class C", Tables: "study-arrival", Rows: "^ft .*time in the calls.*over direct", Column: ratio, Op: AtMost, Limit: 0.704},
			{Source: "t2", Where: "table 6.3", Text: "arrival-aware allgather ×1.62 in radix sort", Tables: "study-arrival", Rows: "^radix .*time in the calls", Column: ratio, Op: AtMost, Limit: 0.617},
			{Source: "t2", Where: "table 6.3", Text: "×1.52 in N-body", Tables: "study-arrival", Rows: "^nbody .*time in the calls", Column: ratio, Op: AtMost, Limit: 0.658},
			{Text: "arrival-aware collectives never slower in FT, IS, radix sort and N-body", Tables: "study-arrival", Rows: "time in the calls", Column: ratio},
			{Source: "p3", Where: "5", Text: "eager channels: receive buffers a tenth in radix sort on 32 ranks", Tables: "study-eager-channels", Rows: "^radix S, 32 .*receive buffers", Column: ratio},
			{Source: "p3", Where: "5", Text: "constant 5–10 MB of communication memory for each process; here at most that up to 32 ranks, and growing with the connections", Tables: "study-eager-channels", Rows: "communication memory.*SRQ over", Column: "compared", Op: AtMost, Limit: 10},
			{Source: "p3", Where: "5", Text: "the same speed, on up to 8 ranks", Tables: "study-eager-channels", Rows: " [48] ranks.*run time", Column: ratio, Op: AtMost, Limit: 1.05},
		},
	}
}
