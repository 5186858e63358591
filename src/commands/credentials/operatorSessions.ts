import { clock } from '../../clock.ts'
import type { Cause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** The sign-outs of the operator, on all nodes. */
export interface OperatorSessions {
  /** Reads the log, so that a sign-out on another node counts at once. Rejects with `unavailable`. */
  isEnded(session_id: string): Promise<boolean>
  /** Resolves when the sign-out is stored. A repetition stores nothing. */
  end(session_id: string, cause: Cause): Promise<void>
}

export const operatorSessionsOf = ({
  aggregates: { operatorSessions },
}: Pick<CommandDeps, 'aggregates'>): OperatorSessions => ({
  isEnded: (session_id) =>
    operatorSessions.read(streamOf.operatorSession(session_id), ({ isEnded }) => isEnded),

  async end(session_id, cause) {
    const command = { type: 'EndOperatorSession', session_id, now: clock.iso() } as const
    await operatorSessions.handle(streamOf.operatorSession(session_id), command, cause)
  },
})
