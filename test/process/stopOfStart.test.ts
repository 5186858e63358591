import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { codeCache } from '../support/codeCache.ts'
import { EMBEDDED, installation } from '../support/installation.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const PROJECTORS = import.meta.resolve('../../src/projections/projectors.ts')

/** A module that keeps one read model at the beginning of the log for ever, and prints a line when a reader waits for it. */
const holding = (name: string): string =>
  `data:text/javascript,${encodeURIComponent(`
    import { Projectors } from ${JSON.stringify(PROJECTORS)}
    const { reach, position } = Projectors.prototype
    const isHeld = (name) => name.startsWith(${JSON.stringify(`${name}@`)})
    Projectors.prototype.position = function (name) {
      return isHeld(name) ? '' : position.call(this, name)
    }
    Projectors.prototype.reach = function (name, cursor, signal) {
      if (!isHeld(name)) return reach.call(this, name, cursor, signal)
      console.log('a reader waits')
      return new Promise((resolve) => signal?.addEventListener('abort', resolve))
    }
  `)}`

const stops = suite('the stop of a start that waits for a read model', { timeoutMs: 60_000 })

for (const [what, name] of [
  ['to fill the directory', 'orgs'],
  ['to end the runs of an earlier worker', 'workers'],
  ['after the sagas have begun', 'audit'],
] as const)
  stops(`${what} is in order`, async () => {
    const child = spawn(process.execPath, [...codeCache, '--import', holding(name), MAIN], {
      env: installation(tempDir(), EMBEDDED),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const closed = once(child, 'close')
    let output = ''
    for (const pipe of [child.stdout, child.stderr]) pipe.on('data', (text) => (output += String(text)))
    await until(() => output.includes('a reader waits'), { timeoutMs: 30_000 })
    child.kill('SIGTERM')
    await closed
    assert.is(child.exitCode, 0, output)
    assert.not.match(output, / (?:warn|error) /, output)
  })

stops.run()
