import { sweepFilesCore } from '../../src/sagas/sweepFiles.ts'
import { suite } from '../support/suite.ts'
import { reacting } from './reacting.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const alarm = (sweep: 'expireUploads' | 'removeOrphans', at: number) =>
  ({ do: 'setAlarm', key: sweep, at, input: { type: 'due', sweep } }) as const

const rule = suite('the rules of the sweep of files')
rule('the first sweeps follow within a minute of the start, spread over the nodes', () => {
  reacting(sweepFilesCore)
    .given()
    .when({ type: 'started', spread: 0.5 })
    .at(1000)
    .then(alarm('expireUploads', 1000 + MINUTE / 2), alarm('removeOrphans', 1000 + MINUTE / 2))
})
rule('expired uploads are ended each minute', () => {
  reacting(sweepFilesCore)
    .given()
    .when({ type: 'due', sweep: 'expireUploads' })
    .at(1000)
    .then(
      { do: 'carryOut', key: 'expireUploads', command: { sweep: 'expireUploads', now: 1000 } },
      alarm('expireUploads', 1000 + MINUTE),
    )
})
rule('orphans are removed every six hours', () => {
  reacting(sweepFilesCore)
    .given()
    .when({ type: 'due', sweep: 'removeOrphans' })
    .at(1000)
    .then(
      { do: 'carryOut', key: 'removeOrphans', command: { sweep: 'removeOrphans', now: 1000 } },
      alarm('removeOrphans', 1000 + 6 * HOUR),
    )
})
rule.run()
