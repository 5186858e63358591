import * as assert from 'uvu/assert'
import { call, deploy, type Event, type Run, type Webhook } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const server = await startServer()
const { api } = server
const SECRET = 'sk_live_planted_4711'

await deploy(api, 'shop', {
  'f.js': `import { call, context, emit, files, fn, run, send } from 'svc'
    let kept
    const read = async () => (kept = await context('KEY'))
    export const returns = async () => ({ deep: ['x' + (await read())] })
    export const throws = async () => { throw new Error('refused ' + (await read())) }
    export const prints = async () => { console.log('key', await read()) }
    export const sends = async () => { await send('told', { key: await read() }); return null }
    export const starts = async () => run('f/echo', await read())
    export const stores = async () => { await files.put('key.txt', await read()); return (await files.get('key.txt')).content.length }
    export const warm = () => kept
    export const echo = (value) => ({ length: value.length, value })
    export const hook = fn({ webhook: { service: 's', path: '/p' } }, async () => ({ status: 200, body: await read() }))`,
})
await api.post('/projects/shop/context', { key: 'KEY', value: SECRET })
const run = (name: string): Promise<Run> => call(api, `f/${name}`)

const masking = suite('a value of context')
masking.after(() => server.stop())

masking('is masked in the result of the run', async () => {
  assert.equal((await run('returns')).result, { deep: ['x***'] })
})

masking('is masked in the message and the stack of an error', async () => {
  const { error } = await run('throws')
  assert.is(error?.message, 'refused ***')
  assert.not.ok(JSON.stringify(error).includes(SECRET))
})

masking('is masked in what the run printed', async () => {
  const { run_id } = await run('prints')
  const { lines } = await api.get<{ lines: { text: string }[] }>(`/runs/${run_id}/logs`)
  assert.equal(
    lines.map(({ text }) => text),
    ['key ***'],
  )
})

masking('is masked in events and in arguments of other runs', async () => {
  await run('sends')
  const told = await until(async () => (await api.page<Event>('/events?event_type=told')).data[0])
  assert.equal(told.event_data, { key: '***' })
  assert.equal((await run('starts')).result, { length: 3, value: '***' })
})

masking('is masked in a later run of the process, which kept it', async () => {
  assert.is((await run('warm')).result, '***')
})

masking('is masked in the reply of a webhook, which is the result of its run', async () => {
  const { url } = (await api.page<Webhook>('/projects/shop/webhooks')).data[0] as Webhook
  assert.is(await (await fetch(url, { method: 'POST' })).json(), '***')
})

masking('is stored in files as it is, because a file belongs to the function', async () => {
  assert.is((await run('stores')).result, SECRET.length)
})

masking.run()
