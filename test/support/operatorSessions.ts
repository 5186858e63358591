import type { OperatorSessions } from '../../src/commands/credentials/operatorSessions.ts'

/** Sessions of the operator whose ends are kept in memory, for tests without a log. */
export const openOperatorSessions = (): OperatorSessions => {
  const ended = new Set<string>()
  return {
    isEnded: (session_id) => Promise.resolve(ended.has(session_id)),
    end: (session_id) => Promise.resolve(void ended.add(session_id)),
  }
}
