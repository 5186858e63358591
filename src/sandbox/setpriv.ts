import { askProgram } from './systemProgram.ts'
import { type Patience, untilAnswered } from './untilAnswered.ts'

/** The options that children start with. */
const OPTIONS = ['--pdeathsig', 'KILL', '--no-new-privs']

/** Resolves with the reason why this `setpriv` cannot be used, or with null. Some systems have a smaller one. */
export const refusalOfSetpriv = (setpriv: string, patience: Patience = {}): Promise<string | null> =>
  untilAnswered(
    { late: `${setpriv} did not end`, refused: `${setpriv} could not be started` },
    patience,
    async (ms) => {
      const limits = { ms, signal: patience.signal }
      const answer = await askProgram(setpriv, [...OPTIONS, '--', '/bin/sh', '-c', ':'], limits)
      if (typeof answer !== 'object') return answer
      const { code, stderr } = answer
      return code === 0 ? null : stderr.trim().split('\n')[0] || `it ended with code ${code}`
    },
  )
