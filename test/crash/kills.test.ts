import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { killAgainAndAgain } from './kills.ts'
import { NODE_START } from './strace.ts'

const kills = suite('a service that is killed under load', { timeoutMs: 120_000 })

kills(
  'has every acknowledged write, publishes no event of a key twice, and ends every run (I1, I3)',
  async () => {
    const lines: string[] = []
    const asked = { dataDir: join(tempDir(), 'data'), kills: 3, seed: 5, command: NODE_START }
    const problems = await killAgainAndAgain({ ...asked, report: (line) => void lines.push(line) })
    assert.equal(problems, [])
    assert.is(lines.length, 3)
  },
)

kills.run()
