import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as assert from 'uvu/assert'
import { Collector } from '../../src/loops/collector.ts'
import { suite } from '../support/suite.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as (options: { type: 'minor' }) => void

const collected = suite('the garbage collector of a thread')

collected('has paused the thread once for each pause, until it is closed', async () => {
  const collector = new Collector()
  const hasPausedBy = async (turn: () => void) => {
    turn()
    await nextTurn()
    return collector.hasPaused()
  }
  collector.hasPaused()
  assert.is(await hasPausedBy(() => collect({ type: 'minor' })), true)
  assert.is(collector.hasPaused(), false)
  collector.close()
  assert.is(await hasPausedBy(() => collect({ type: 'minor' })), false)
})

collected.run()
