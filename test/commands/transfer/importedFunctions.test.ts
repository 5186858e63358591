import * as assert from 'uvu/assert'
import { checkImportedFunctions } from '../../../src/commands/transfer/checkImportedFunctions.ts'
import type { FunctionSpec } from '../../../src/events/project.ts'
import { suite } from '../../support/suite.ts'

const scheduled = (count: number): FunctionSpec[] =>
  Array.from({ length: count }, (_, n) => ({
    ns: 'main',
    var: `f${n}`,
    schedule: { cron: '0 3 * * *', timezone: 'UTC' },
  }))

const imported = suite('imported functions')
imported('have at most as many schedules as those of an upload', () => {
  assert.is(checkImportedFunctions(scheduled(1000)), undefined)
  assert.throws(() => checkImportedFunctions(scheduled(1001)), /at most 1000 schedules, got 1001/)
})
imported('have schedules that can be read', () =>
  assert.throws(() =>
    checkImportedFunctions([{ ns: 'main', var: 'f', schedule: { cron: '0 3', timezone: 'UTC' } }]),
  ),
)
imported.run()
