import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { refusalOfSetpriv } from '../../src/sandbox/setpriv.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const trying = suite('the try of setpriv at the start')

/** A `setpriv` whose first start does something else than the later ones. */
const setprivThat = (first: string, later = 'exit 0'): string => {
  const dir = tempDir()
  const path = join(dir, 'setpriv')
  const script = `#!/bin/sh\nif [ -e ${dir}/started ]; then ${later}; fi\ntouch ${dir}/started\n${first}\n`
  writeFileSync(path, script, { mode: 0o755 })
  return path
}

/** The outcome of the try, and the reasons for which it was repeated. */
const outcomeOf = async (setpriv: string, probeMs = 60_000) => {
  const slow: string[] = []
  const refusal = await refusalOfSetpriv(setpriv, { probeMs, onSlow: (reason) => slow.push(reason) })
  return { refusal, slow }
}

trying('repeats one that does not end in time, because silence is no refusal', async () => {
  const setpriv = setprivThat('while :; do :; done')
  const { refusal, slow } = await outcomeOf(setpriv, 500)
  assert.is(refusal, null)
  assert.is(slow[0], `${setpriv} did not end within 0.5 s; trying again for 1 s`)
})

trying('repeats one that the machine has no room for', async () => {
  const full = setprivThat("echo 'sh: fork: Resource temporarily unavailable' >&2; exit 254")
  const killed = setprivThat('kill -9 $$')
  assert.equal(await Promise.all([outcomeOf(full), outcomeOf(killed)]), [
    {
      refusal: null,
      slow: [`${full} could not be started: sh: fork: Resource temporarily unavailable; trying again`],
    },
    { refusal: null, slow: [`${killed} could not be started: ${killed} was ended by SIGKILL; trying again`] },
  ])
})

trying('does without one that refuses an option, and says why', async () => {
  const small = setprivThat("echo 'setpriv: unrecognized option: pdeathsig' >&2; exit 1")
  assert.equal(await outcomeOf(small), {
    refusal: 'setpriv: unrecognized option: pdeathsig',
    slow: [],
  })
})

trying('ends with the service', async () => {
  const stop = new AbortController()
  const setpriv = setprivThat('', 'while :; do :; done')
  await refusalOfSetpriv(setpriv)
  const ended = refusalOfSetpriv(setpriv, { signal: stop.signal }).catch(String)
  stop.abort(new Error('stopped'))
  assert.is(await ended, 'Error: stopped')
})

trying.run()
