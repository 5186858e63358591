import * as assert from 'uvu/assert'
import { watchHead } from '../../../src/commands/installation/watchHead.ts'
import { AppError, PermanentError } from '../../../src/errors.ts'
import { START } from '../../../src/events/event.ts'
import { cursorOf } from '../../contracts/readModels/collection.ts'
import { failureOf } from '../../contracts/eventStore/facts.ts'
import { suite } from '../../support/suite.ts'

/**
 * An event store with these heads, one after the other; the signal aborts when there are no more. It has never had an event at
 * the cursors in `gaps`.
 */
const watched = (...heads: readonly (string | Error)[]) => watchedWith([], heads)

const watchedWith = (gaps: readonly string[], heads: readonly (string | Error)[]) => {
  const ending = new AbortController()
  let next = 0
  const head = async (): Promise<string> => {
    const found = heads[next++]
    if (next >= heads.length) ending.abort()
    if (found instanceof Error) throw found
    return found ?? START
  }
  const canHaveHad = async (cursor: string) => !gaps.includes(cursor)
  const watch = watchHead({ head, canHaveHad }, 1)
  return { run: () => failureOf(watch(ending.signal)), seen: () => next }
}
const [one, two, three] = [1, 2, 3].map(cursorOf) as [string, string, string]

const head = suite('the watch over the end of the log')

head('goes on while the log grows, rests or is read in part once', async () => {
  assert.is(await watched(one, two, two, START, three, one, three).run(), undefined)
})

head('ends for good when the log has become shorter', async () => {
  const { run, seen } = watched(one, three, two, two, two, two, two)
  assert.instance(await run(), PermanentError)
  assert.is(seen(), 5)
})

head('ends for good when others have made a shorter log longer again', async () => {
  const { run, seen } = watchedWith([two], [one, two, three, three, three, three, three])
  assert.instance(await run(), PermanentError)
  assert.is(seen(), 5)
})

head('remembers the end over an outage, after which the log may be another', async () => {
  const away = new AppError('unavailable', 'The event store does not answer')
  const { run } = watched(three, away, two, two, two, two)
  assert.is(await run(), away)
  assert.instance(await run(), PermanentError)
})
head.run()
