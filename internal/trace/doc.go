// Package trace is the timeline of a job: its file format, the matching of messages, the
// analysis of waits and the picture.
//
// A rank records its calls as a list of [Event]s in the order in which they began. When the
// job ends it numbers the messages ([Number]) and encodes the list as JSON in the Trace Event
// Format, which the Perfetto UI and chrome://tracing open ([Append]). Numbers are local to a
// rank, and still the same at both ends of a message, because messages between two ranks
// with one context and tag match in order (MPI-4.1 section 3.5). So no rank needs the
// events of another, and rank 0 only concatenates the texts.
//
// [Read] parses the file. [Trace.Match] joins the two ends of each message, and
// [Trace.Analyze] finds who waited for whom. The package does no I/O and reads no clock.
package trace
