import * as assert from 'uvu/assert'
import { call, deploy } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startServer({ env: {} }) // one worker: processes are compared, so no cluster
const { api } = server

const READ = `async (key) => {
  const read = await context(key).then((value) => value.length, ({ code, message }) => ({ code, message }))
  return { read, process: (globalThis.me ??= Math.random()) }
}`
await deploy(api, 'shop', {
  'f.js': `import { context, fn, run } from 'svc'
    export const all = ${READ}
    export const some = fn({ context: ['STRIPE_KEY'] }, ${READ})
    export const same = fn({ context: ['STRIPE_KEY'] }, ${READ})
    export const none = fn({ context: [] }, ${READ})
    export const through = fn({ context: [] }, (key) => run('f/all', key))`,
})
for (const key of ['STRIPE_KEY', 'MAIL_KEY'])
  await api.post('/projects/shop/context', { key, value: 'a secret of 24 characters' })

interface Read {
  readonly read: number | { readonly code: string; readonly message: string }
  readonly process: number
}
const readBy = async (fn: string, key: string): Promise<Read> =>
  (await call(api, `f/${fn}`, key)).result as Read

const reading = suite('a function that reads context')
reading.after(() => server.stop())

reading('reads all variables of its project without a declaration', async () => {
  assert.is((await readBy('all', 'STRIPE_KEY')).read, 25)
  assert.is((await readBy('all', 'MAIL_KEY')).read, 25)
})

reading('reads only the variables that it declares', async () => {
  assert.is((await readBy('some', 'STRIPE_KEY')).read, 25)
  assert.equal((await readBy('some', 'MAIL_KEY')).read, {
    code: 'forbidden',
    message:
      "context(\"MAIL_KEY\"): f/some declares that it does not read this variable; to allow it, deploy it with `context: ['STRIPE_KEY', 'MAIL_KEY']` in its metadata",
  })
})

reading('reads none with an empty declaration', async () => {
  const { read } = await readBy('none', 'STRIPE_KEY')
  assert.match(typeof read === 'object' ? read.message : '', "deploy it with `context: ['STRIPE_KEY']`")
})

reading('shares its process only with functions that declare the same variables', async () => {
  const [all, some, same, none] = await Promise.all(
    ['all', 'some', 'same', 'none'].map((fn) => readBy(fn, 'STRIPE_KEY')),
  )
  assert.is(some?.process, same?.process)
  assert.is(new Set([all?.process, some?.process, none?.process]).size, 3)
})

reading('may start a function with more rights, which runs in its own process', async () => {
  const through = await readBy('through', 'STRIPE_KEY')
  assert.is(through.read, 25)
  assert.is.not(through.process, (await readBy('none', 'STRIPE_KEY')).process)
})

reading('is refused keys that no variable can have', async () => {
  const { read } = await readBy('all', '../STRIPE_KEY')
  assert.is(typeof read === 'object' && read.code, 'bad_request')
})

reading.run()
