import * as assert from 'uvu/assert'
import { SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'
import { differenceIn } from './check.ts'
import { everySubject } from './subjects/index.ts'

/** `npm run model` sends as many commands as asked. */
const COMMANDS = 300

const model = suite(`the service behaves as its model (seed ${SEED})`, { timeoutMs: 60_000 })

everySubject((subject) =>
  model(
    `in everything about ${subject.name}, also at once, on two nodes and after the death of a node`,
    async () => {
      assert.is(await differenceIn(subject, { commands: COMMANDS, seed: SEED }), null)
    },
  ),
)

model.run()
