import { newId } from '../../src/ids.ts'
import { attackSuite } from './attack.ts'
import { allRefused, expected, limited } from './raw.ts'

attackSuite('requests with an Idempotency-Key', [
  {
    id: 'B/10-idempotency',
    attempt: "get another tenant's or credential's stored reply, with its secret, by their Idempotency-Key",
    severity: 'high',
    run: async ({ attacker, victim }) => {
      const key = { 'Idempotency-Key': 'guessed' }
      const body = { permissions: { 'env:*': ['read'] } }
      const first = await victim.api.send('POST', '/sessions', { body, headers: key })
      const secret = (first.json as { data: { token: string } }).data.token
      const sibling = await limited(victim, { 'session:*': ['create'], 'env:*': ['read'] })
      const replies = [
        await attacker.api.send('POST', '/sessions', { body, headers: key }),
        await sibling.send('POST', '/sessions', { body, headers: key }),
      ]
      for (const { text, headers } of replies) {
        expected(!text.includes(secret), 'the token was replayed')
        expected(headers.get('idempotency-replayed') === null, 'a reply was replayed')
      }
      for (const odd of ['', ' ', 'a b', 'x'.repeat(256)])
        expected(
          (await victim.api.send('POST', '/sessions', { body, headers: { 'Idempotency-Key': odd } }))
            .status === 400,
          `the key "${odd.slice(0, 9)}" was accepted`,
        )
      return 'neither another tenant nor another credential gets the reply; odd keys are 400'
    },
  },
  {
    id: 'B/10-idempotency/squat',
    attempt: 'occupy predictable keys of another credential of the environment',
    severity: 'low',
    run: async ({ victim }) => {
      const restricted = await limited(victim, { 'event:*': ['create'] })
      const headers = { 'Idempotency-Key': 'order-17-created' }
      expected(
        (await restricted.send('POST', '/events', { body: { event_type: 'squat' }, headers })).status === 201,
        'the squat was refused',
      )
      const { status, headers: got } = await victim.api.send('POST', '/events', {
        body: { event_type: 'order' },
        headers,
      })
      expected(
        status === 201 && got.get('idempotency-replayed') === null,
        `the request of the victim: ${status}`,
      )
      return 'a key belongs to its credential: the other request is executed'
    },
  },
  {
    id: 'B/10-idempotency/inner-checks',
    attempt: "a replay without the handler's own permission check (file: create or update)",
    severity: 'low',
    run: async ({ victim }) => {
      const path = `inner-${newId()}`
      const creator = await limited(victim, { 'file:*': ['create'] })
      const updater = await limited(victim, { 'file:*': ['update'] })
      const sent = { body: { path }, headers: { 'Idempotency-Key': path } }
      expected((await creator.send('POST', '/files/uploads', sent)).status === 201, 'the upload was refused')
      const other = (await updater.send('POST', '/files/uploads', sent)).status
      await victim.api.send('PUT', `/files/upload/${path}`, { body: 'x' })
      const late = (await creator.send('POST', '/files/uploads', sent)).status
      return allRefused({ 'another credential': other, 'the same after the file exists': late }, [403])
    },
  },
])
