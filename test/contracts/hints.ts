import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import type { Hints } from '../../src/ports/hints.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

export interface OpenHints {
  readonly hints: Hints
  close(): Promise<void>
}

/** The rules of `ports/hints.ts` for every adapter. */
export const hintsContract = (name: string, open: () => Promise<OpenHints>): void => {
  const notices = suite<OpenHints>(`${name} hints`)
  notices.before(async (context) => Object.assign(context, await open()))
  notices.after(({ close }) => close())

  notices('reach every listener of the topic, of this node too, once and in order', async ({ hints }) => {
    const heard: string[][] = [[], []]
    const stops = heard.map((list) => hints.on('reached', (text) => list.push(text)))
    const sent = Array.from({ length: 20 }, (_, i) => `runs ${newId()} ${i}`)
    for (const text of sent) hints.publish('reached', text)
    await until(() => heard.every((list) => list.length >= sent.length))
    for (const stop of stops) stop()
    assert.equal(heard, [sent, sent])
  })

  notices('of other topics are not heard', async ({ hints }) => {
    const heard: string[] = []
    const stops = [
      hints.on('wanted', (text) => heard.push(`wanted ${text}`)),
      hints.on('revoked', (text) => heard.push(`revoked ${text}`)),
    ]
    hints.publish('reached', 'a')
    hints.publish('wanted', 'b')
    hints.publish('revoked', 'c')
    await until(() => heard.length >= 2)
    for (const stop of stops) stop()
    assert.equal(heard, ['wanted b', 'revoked c'])
  })

  notices('are not heard after the listener stopped', async ({ hints }) => {
    const heard: string[] = []
    const stop = hints.on('wanted', (text) => heard.push(`stopped ${text}`))
    const stopOther = hints.on('wanted', (text) => heard.push(text))
    stop()
    hints.publish('wanted', 'a')
    await until(() => heard.length > 0)
    stopOther()
    assert.equal(heard, ['a'])
  })

  notices('carry any text', async ({ hints }) => {
    const texts = ['', ' ', 'ü 雪 🌨', '{"a":1}', 'two\nlines', 'x'.repeat(100_000)]
    const heard: string[] = []
    const stop = hints.on('revoked', (text) => heard.push(text))
    for (const text of texts) hints.publish('revoked', text)
    await until(() => heard.length >= texts.length)
    stop()
    assert.equal(heard, texts)
  })

  notices('never reach the publisher before it went on', async ({ hints }) => {
    const heard: string[] = []
    const stop = hints.on('wanted', (text) => heard.push(text))
    hints.publish('wanted', 'a')
    assert.equal(heard, [])
    await until(() => heard.length > 0)
    stop()
  })

  notices('publishing after close throws nothing', async () => {
    const { hints, close } = await open()
    await close()
    hints.publish('wanted', 'a')
    assert.not.ok(hints.connected)
  })

  notices.run()
}
