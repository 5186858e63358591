/** Functions that talk on their stream; deployed as `chat.js`. */
export const CHAT = `
import { setTimeout } from 'node:timers/promises'
import { currentRun, emit, fn, run, send } from 'svc'

export const talks = fn({ 'on-event': 'talk' }, async ({ data }) => {
  for (const word of data.words) await emit('word', word)
  await send('talked', null)
  return data.words.length
})
export const afterwards = fn({ 'on-event': 'talked' }, () => 'heard')
export const fails = fn({ 'on-event': 'fail' }, () => { throw new Error('no') })
export const retries = fn({ 'on-event': 'again', retry: { attempts: 1, delay: 20 } }, () => {
  if (currentRun().attempt === 1) throw new Error('not yet')
})
export const child = () => run('chat/quick')
export const quick = () => 'quick'
export const waits = fn({ 'on-event': 'wait' }, ({ data }) => setTimeout(data, 'waited', { signal: currentRun().signal }))
export const large = fn({ 'on-event': 'large' }, async () => { const text = 'é'.repeat(50_000); await emit('text', text); return text })
export const megabytes = fn({ 'on-event': 'megabytes' }, () => 'x'.repeat(5 << 20))
export const floods = fn({ 'on-event': 'flood' }, async () => { for (let n = 0; n < 1500; n++) await emit('n', String(n).padEnd(8000)) })
`
