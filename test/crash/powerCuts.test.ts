import * as assert from 'uvu/assert'
import { notHere } from '../support/notHere.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { withEarlyReplies, withoutSyncs } from './plant.ts'
import { checkPowerCuts, type Finding } from './powerCuts.ts'
import { record } from './record.ts'
import type { Recording } from './recording.ts'
import { straceProblem } from './strace.ts'

const SEED = 17
const STATES = 60
/** A planted fault is found by far fewer. */
const STATES_WITH_FAULT = 100
const STEPS_EARLIER = 60

const problem = straceProblem()
if (problem !== null) {
  notHere('power cuts', problem)
} else {
  const powerCuts = suite<{ recording: Recording }>('a service that was recorded under load', {
    timeoutMs: 170_000,
  })

  /** The findings, up to the first one: each of them fails the test or proves the checker. */
  const findingsIn = async (
    recording: Recording,
    count: number,
    serviceEvery: number,
  ): Promise<readonly Finding[]> => {
    const states = Array.from({ length: count }, (_, n) => n + 1)
    const asked = {
      recording,
      seed: SEED,
      states,
      serviceEvery,
      keepDir: tempDir(),
      mostFindings: 1,
      report: () => {},
    }
    return (await checkPowerCuts(asked)).findings
  }

  powerCuts.before(async (context) => {
    context.recording = await record({
      dir: tempDir(),
      seed: SEED,
      endings: ['SIGKILL'],
      loadMs: 1000,
      report: () => {},
    })
  })

  powerCuts('has every acknowledged fact after a power cut, and starts', async ({ recording }) => {
    assert.equal(await findingsIn(recording, STATES, STATES), [])
  })

  const finds = (what: string, plant: (recording: Recording) => Recording, expected: RegExp) =>
    powerCuts(`is found to lose data, or refuses to start, if it ${what}`, async ({ recording }) => {
      const findings = await findingsIn(plant(recording), STATES_WITH_FAULT, Infinity)
      assert.ok(
        findings.some(({ text }) => expected.test(text)),
        `got ${findings.map(({ text }) => text).join('; ')}`,
      )
    })

  finds(
    'left out the sync of the log',
    (recording) => withoutSyncs(recording, (path) => path.endsWith('log.db-wal')),
    /^lost acknowledged facts|\blog\b/,
  )
  finds(
    'replied before its facts were durable',
    (recording) => withEarlyReplies(recording, STEPS_EARLIER),
    /^lost acknowledged facts|\blog\b/,
  )
  finds(
    'renamed blobs before it synced their content',
    (recording) => withoutSyncs(recording, (path) => path.includes('/blobs/tmp/')),
    /blob|key/,
  )
  finds(
    'did not sync the folders of blobs',
    (recording) => withoutSyncs(recording, (path) => path.includes('/blobs/objects')),
    /blob|key/,
  )

  powerCuts.run()
}
