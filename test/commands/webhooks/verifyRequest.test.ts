import { createHmac } from 'node:crypto'
import * as assert from 'uvu/assert'
import { clock } from '../../../src/clock.ts'
import { createVariable } from '../../../src/commands/context/createVariable.ts'
import { findWebhook } from '../../../src/commands/webhooks/findWebhook.ts'
import { INLINE_BODY_BYTES, storeBody } from '../../../src/commands/webhooks/storeBody.ts'
import { verifyRequest } from '../../../src/commands/webhooks/verifyRequest.ts'
import type { VerifyPreset } from '../../../src/events/project.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'

const node = await openCommands()
const { deps } = node
const env = await plantEnv(node, 'acme')
const hook = { service: 's', path: '/a', method: 'POST', name: 'a', description: '', auth: 'none' } as const
await plantBuild(node, env, { name: 'shop', functions: [{ ns: 'h', var: 'a', webhook: hook }] })
await createVariable(deps, { project: 'shop', key: 'KEY', value: 'secret' }, env.caller)
const token = deps.keyring.webhookToken(env.env_id, hook)
const endpoint = await findWebhook(deps, {
  method: 'POST',
  hostname: 'svc.test',
  path: `acme/dev/s/a/${token}`,
})

/** Returns the id that is found in a body that arrives in these chunks. */
const idIn = async (preset: VerifyPreset, chunks: readonly string[]): Promise<string | undefined> => {
  const time = Math.floor(clock.now() / 1000)
  const macOf = (text: string) => createHmac('sha256', 'secret').update(text).digest('hex')
  const body = chunks.join('')
  const headers = {
    'stripe-signature': `t=${time},v1=${macOf(`${time}.${body}`)}`,
    'x-slack-request-timestamp': String(time),
    'x-slack-signature': `v0=${macOf(`v0:${time}:${body}`)}`,
  }
  const check = await verifyRequest(deps, endpoint, { preset, context: 'KEY' }, headers)
  const content = async function* () {
    for (const chunk of chunks) yield Buffer.from(chunk)
  }
  const { fields } = await storeBody(deps.payloads, check.through(content()), env)
  return check.finish(fields)
}

const large = 'x'.repeat(INLINE_BODY_BYTES)

const ids = suite('the id of a delivery whose body arrives in chunks')

ids('is read from a small body as a whole', async () => {
  assert.is(await idIn('slack', ['{"token":"x","ev', 'ent_id":"Ev1"}']), 'Ev1')
  assert.is(await idIn('stripe', ['{"object":"event",', '"id":"evt_1"}']), 'evt_1')
  assert.is(await idIn('slack', []), undefined)
  assert.is(await idIn('slack', ['', '']), undefined)
})

ids('is read from the begin of a large body, whatever its first chunk contains', async () => {
  const chunks = ['{', '"id":"ev', 't_2",', `"text":"${large}"`, '}']
  assert.is(await idIn('stripe', chunks), 'evt_2')
  assert.is(await idIn('stripe', [chunks.join('')]), 'evt_2')
  assert.is(await idIn('slack', [`{"event_id":"Ev1","text":"${large}"}`]), undefined)
})

ids.after(() => node.close())
ids.run()
