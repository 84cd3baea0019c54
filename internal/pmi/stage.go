package pmi

import "context"

// Stages of Init. A job that does not start is reported like one that is stuck: the board
// shows in which stage each rank waits.

type stageKey struct{}

// InStage returns a context whose Fence names a stage of Init on the board.
func InStage(ctx context.Context, stage string) context.Context {
	return context.WithValue(ctx, stageKey{}, stage)
}

// Stage records that a rank waits in a stage of Init for something other than a Fence. The
// next Fence, or Running, ends it.
func (b *Board) Stage(rank int, stage string) {
	b.Waiting(rank, WaitState{Op: "Init (" + stage + ")", Comm: startComm, Peer: PeerNone, Tag: TagNone})
}

// fenceWait returns the wait of a Fence.
func fenceWait(ctx context.Context) WaitState {
	op := fenceOp
	if stage, ok := ctx.Value(stageKey{}).(string); ok {
		op += " (" + stage + ")"
	}
	return WaitState{Op: op, Comm: startComm, Peer: PeerNone, Tag: TagNone}
}
