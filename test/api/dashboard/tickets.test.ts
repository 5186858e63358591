import * as assert from 'uvu/assert'
import { parseToken } from '../../../src/access/tokens.ts'
import { openVisitor } from '../../support/dashboard.ts'
import { openApi } from '../../support/http.ts'
import { addEnvironment, EVERYTHING, startServer } from '../../support/server.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'
import { newServiceKey, newSession } from '../issuing.ts'

interface Ticket {
  readonly ticket: string
  readonly expires_at: string
}

const dataDir = tempDir()
const READS = { 'project:*': ['read'] }
const [fullKey = '', readsKey = ''] = await addEnvironment(dataDir, 'team', EVERYTHING, READS)
const server = await startServer({ dataDir })
const { url } = server
const [full, reads] = [openApi(url, fullKey), openApi(url, readsKey)]
await until(() => full.page('/projects'))

const newTicket = (api = full): Promise<Ticket> => api.post('/sign-in/tickets')
const redeem = (ticket: string) => openVisitor(url).send('POST', '/v1/sign-in', { body: { ticket } })

const tickets = suite('a ticket', { timeoutMs: 60_000 })

tickets('signs in once, with the permissions of its API key', async () => {
  const before = Date.now()
  const { ticket, expires_at } = await newTicket(reads)
  assert.ok(Date.parse(expires_at) <= Date.now() + 60_000 && Date.parse(expires_at) >= before + 59_000)
  const visitor = openVisitor(url)
  const first = await visitor.send('POST', '/v1/sign-in', { body: { ticket } })
  assert.is(first.status, 200)
  assert.equal((first.json as { data: { permissions: unknown } }).data.permissions, READS)
  assert.is((await visitor.send('GET', '/v1/projects')).status, 200)
  assert.is((await redeem(ticket)).status, 401)
})

tickets('signs in one of many requests at once', async () => {
  const { ticket } = await newTicket()
  const replies = await Promise.all(Array.from({ length: 10 }, () => redeem(ticket)))
  assert.equal(replies.map(({ status }) => status).sort(), [200, ...Array.from({ length: 9 }, () => 401)])
})

tickets('is for API keys only', async () => {
  const { token } = await newSession(full, { '*:*': ['*'] })
  const key = await newServiceKey(full, { 'run:*': ['read'] }, { name: 'n' })
  for (const credential of [token, key.token])
    assert.is((await openApi(url, credential).refused('POST', '/sign-in/tickets')).status, 403)
})

tickets('has no permissions of its own', async () => {
  const { ticket } = await newTicket()
  const [token = ''] = ticket.split('.')
  assert.is(parseToken(token)?.kind, 'session')
  assert.is((await openApi(url, token).refused('GET', '/projects')).status, 403)
})

tickets('cannot be made from a session, whatever its metadata', async () => {
  const { ticket } = await newTicket()
  const [token = '', proof = ''] = ticket.split('.')
  const sessions = await full.page<{ metadata: unknown }>('/sessions')
  const [metadata] = sessions.data.map((session) => session.metadata)
  const forged = await newSession(full, {}, { metadata })
  for (const text of [
    forged.token,
    `${forged.token}.${proof}`,
    `${token}.`,
    `${token}.${'0'.repeat(64)}`,
    token,
    `.${proof}`,
  ])
    assert.is((await redeem(text)).status, 401, text)
  assert.is((await redeem(ticket)).status, 200, 'the attempts did not use it')
})

tickets.after(server.stop)
tickets.run()
