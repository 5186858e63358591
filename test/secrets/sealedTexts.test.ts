import { createCipheriv, hkdfSync } from 'node:crypto'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { suite } from '../support/suite.ts'
import { cause, closing, masterKey, opening, type Secrets, throws } from './openSecrets.ts'

const sealing = suite<Secrets>('a sealed text')
sealing.before.each(opening)
sealing.after.each(closing)

sealing('can be unsealed on every node, also after a restart', async ({ node }) => {
  const env = newId()
  const sealed = await node().keyring.seal(env, 'p', 'Grüße')
  assert.is(await node().keyring.unseal(env, 'p', sealed), 'Grüße')
})

sealing('names its key, and differs each time', async ({ node }) => {
  const { keyring, dataKeys } = node()
  const env = newId()
  const [one, two] = [await keyring.seal(env, 'p', 'x'), await keyring.seal(env, 'p', 'x')]
  const { id } = await dataKeys.current({ env_id: env })
  assert.ok(one.startsWith(`2.${id}.`) && two.startsWith(`2.${id}.`))
  assert.is.not(one, two)
})

sealing('can be unsealed for no other environment, project, purpose or key', async ({ node }) => {
  const { keyring, dataKeys } = node()
  const [env, project] = [newId(), newId()]
  const sealed = await keyring.seal(env, 'p', 'x', project)
  const other = newId()
  await keyring.seal(other, 'p', 'x')
  await keyring.seal(env, 'p', 'x')
  assert.is(await keyring.unseal(env, 'p', sealed, project), 'x')
  await throws(keyring.unseal(env, 'q', sealed, project))
  await throws(keyring.unseal(env, 'p', sealed))
  await throws(keyring.unseal(env, 'p', sealed, newId()))
  await throws(keyring.unseal(other, 'p', sealed, project))
  const next = await dataKeys.rotate({ env_id: env, project_id: project }, cause)
  await throws(keyring.unseal(env, 'p', sealed.replace(/2\.[^.]+/, `2.${next}`), project))
})

sealing('cannot be unsealed with one bit changed', async ({ node }) => {
  const { keyring } = node()
  const sealed = await keyring.seal('env', 'p', 'x'.repeat(20))
  const [way, id, text = ''] = sealed.split('.')
  const bytes = Buffer.from(text, 'base64')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    await throws(keyring.unseal('env', 'p', `${way}.${id}.${changed.toString('base64')}`))
  }
  await throws(keyring.unseal('env', 'p', `${way}.${id}.${bytes.subarray(0, -12).toString('base64')}`))
  await throws(keyring.unseal('env', 'p', `${way}.${id}.`))
})

sealing('cannot be unsealed under another master key', async ({ node }) => {
  const sealed = await node().keyring.seal('env', 'p', 'x')
  const error = await throws(node(Buffer.alloc(32, 8)).keyring.unseal('env', 'p', sealed))
  assert.match((error as Error).message, 'SVC_MASTER_KEY')
})

sealing('of the first format can still be unsealed', async ({ node }) => {
  const key = Buffer.from(hkdfSync('sha256', masterKey, 'env', 'svc environment', 32))
  const nonce = Buffer.alloc(12, 1)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from('env\nwebhook request'))
  const bytes = Buffer.concat([nonce, cipher.update('old'), cipher.final(), cipher.getAuthTag()])
  const sealed = `1.${bytes.toString('base64')}`
  assert.is(await node().keyring.unseal('env', 'webhook request', sealed), 'old')
  await throws(node().keyring.unseal('env', 'other', sealed))
})

sealing('by many nodes at once is sealed with one key', async ({ node, blobs }) => {
  const env = newId()
  const sealed = await Promise.all([1, 2, 3, 4, 5].map(() => node().keyring.seal(env, 'p', 'x')))
  assert.is(new Set(sealed.map((text) => text.split('.')[1])).size, 1)
  assert.is((await Array.fromAsync(blobs.list(`keys/${env}/`))).length, 1)
  for (const text of sealed) assert.is(await node().keyring.unseal(env, 'p', text), 'x')
})
sealing.run()
