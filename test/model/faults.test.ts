import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { differenceIn } from './check.ts'
import { FAULTS } from './faults.ts'
import { everySubject } from './subjects/index.ts'

/** A fault that these many commands do not show is not found. */
const COMMANDS = 2500
const SEED = 1

const finding = suite('the model finds', { timeoutMs: 60_000 })

for (const { subject: wanted, text, fault } of FAULTS)
  everySubject((subject) => {
    if (subject.name !== wanted) return
    finding(`${text} (${wanted})`, async () => {
      const difference = await differenceIn(subject, {
        commands: COMMANDS,
        seed: SEED,
        fault,
        shrinks: false,
      })
      assert.ok(difference, 'Expected a difference')
    })
  })

finding.run()
