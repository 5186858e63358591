import * as assert from 'uvu/assert'
import { openDns } from '../../src/adapters/system/dns.ts'
import { isAppError } from '../../src/errors.ts'
import { type DnsServer, startDns } from '../support/dnsServer.ts'
import { suite } from '../support/suite.ts'

const dns = suite<{ server: DnsServer }>('CNAME records')
dns.before.each(async (context) => {
  context.server = await startDns()
})
dns.after.each(({ server }) => server.stop())

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'fulfilled',
    (error: unknown) => (isAppError(error) ? error.code : String(error)),
  )

dns('are found, in lower case', async ({ server }) => {
  server.records.set('a.example.com', 'Target.Example.ORG')
  assert.equal(await openDns([server.address]).cname('a.example.com'), ['target.example.org'])
})
dns('that do not exist are returned as none', async ({ server }) => {
  assert.equal(await openDns([server.address]).cname('none.example.com'), [])
})
dns('are resolved each time, so a new record is found', async ({ server }) => {
  const { cname } = openDns([server.address])
  assert.equal(await cname('a.example.com'), [])
  server.records.set('a.example.com', 'one.example.org')
  assert.equal(await cname('a.example.com'), ['one.example.org'])
  server.records.set('a.example.com', 'two.example.org')
  assert.equal(await cname('a.example.com'), ['two.example.org'])
})
dns('of an invalid name are returned as none', async ({ server }) => {
  const { cname } = openDns([server.address])
  assert.equal(await cname(`${'a'.repeat(64)}.example.com`), [])
  assert.equal(await cname(`${`${'a'.repeat(60)}.`.repeat(5)}com`), [])
})
for (const mood of ['silent', 'fails'] as const) {
  dns(`are \`unavailable\` when the server ${mood}`, async ({ server }) => {
    server.mood = mood
    assert.is(await codeOf(openDns([server.address]).cname('a.example.com')), 'unavailable')
  })
}
dns('are known only when all resolvers agree', async ({ server }) => {
  const other = await startDns()
  const { cname } = openDns([server.address, other.address])
  assert.equal(await cname('a.example.com'), [])
  server.records.set('a.example.com', 'one.example.org')
  assert.is(await codeOf(cname('a.example.com')), 'unavailable')
  other.records.set('a.example.com', 'two.example.org')
  assert.is(await codeOf(cname('a.example.com')), 'unavailable')
  other.records.set('a.example.com', 'one.example.org')
  assert.equal(await cname('a.example.com'), ['one.example.org'])
  other.mood = 'fails'
  assert.is(await codeOf(cname('a.example.com')), 'unavailable')
  await other.stop()
})
dns.run()
