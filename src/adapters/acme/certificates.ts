import { AsyncLocalStorage } from 'node:async_hooks'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import * as acme from 'acme-client'
import { isoOf } from '../../clock.ts'
import { AppError, isAppError, messageOf } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import { Backoff } from '../../loops/backoff.ts'
import { throttled } from '../../loops/throttled.ts'
import type { Certificate, Certificates } from '../../ports/certificates.ts'
import { accountKeyOf } from './accountKey.ts'
import { type Problem, problemOf, refusalOf } from './problem.ts'
import { openTransport, type Send } from './transport.ts'

/** The library has one transport for all authorities of a process; each operation here brings its own. */
const transport = new AsyncLocalStorage<Send>()
acme.axios.defaults.adapter = (config) => {
  const send = transport.getStore()
  if (!send) throw new Error('Expected a request within an operation')
  return send(config)
}

/** Pauses between two looks at an order in progress, and their number. */
const LOOKS = { firstMs: 500, longestMs: 5000 }
const MAX_LOOKS = 20

interface Authority {
  readonly directoryUrl: string
  /** Receives warnings of the authority. */
  readonly email: string | null
  /** PEM of the roots of its own TLS; null: the usual ones. */
  readonly ca: string | null
  readonly rootKey: Uint8Array
  readonly logger: Pick<Logger, 'warn'>
}

/**
 * Certificates by ACME (RFC 8555). A domain is proved by a TXT record below the zone of this service, to which its owner
 * has pointed `_acme-challenge` (DNS-01): so it has a certificate before its first request arrives.
 */
export const openAcme = ({ directoryUrl, email, ca, rootKey, logger }: Authority): Certificates => {
  const warn = throttled(logger)
  const send = openTransport(ca ?? undefined, (error) =>
    warn('The certificate authority could not be reached', { error: messageOf(error) }),
  )
  const accountKey = accountKeyOf(rootKey, directoryUrl)
  let account: Promise<acme.Client> | undefined
  /** The client with its account: a repeated creation returns the existing one. */
  const client = (): Promise<acme.Client> => {
    account ??= openAccount({ directoryUrl, accountKey }, email)
    return account
  }
  const attempt = async <T>(work: (client: acme.Client) => Promise<T>): Promise<T> => {
    try {
      return await transport.run(send, async () => work(await client()))
    } catch (error) {
      account = undefined // it may be unknown to the authority
      if (isAppError(error)) throw error
      throw new AppError('unavailable', refusalOf({ detail: messageOf(error) }), { cause: error })
    }
  }
  return {
    issue: (domain, publish) => attempt((client) => order(client, domain, publish)),
    revoke: (chain) => attempt((client) => revoke(client, chain)),
  }
}

const openAccount = async (
  options: ConstructorParameters<typeof acme.Client>[0],
  email: string | null,
): Promise<acme.Client> => {
  const client = new acme.Client(options)
  const contact = email === null ? [] : [`mailto:${email}`]
  await client.createAccount({ termsOfServiceAgreed: true, contact })
  return client
}

const order = async (
  client: acme.Client,
  domain: string,
  publish: (values: readonly string[]) => Promise<void>,
): Promise<Certificate> => {
  const order = await client.createOrder({ identifiers: [{ type: 'dns', value: domain }] })
  const open = (await client.getAuthorizations(order)).filter(({ status }) => status !== 'valid')
  const challenges = open.map(({ challenges }) => {
    const challenge = challenges.find(({ type }) => type === 'dns-01')
    if (!challenge) throw new AppError('unavailable', 'The certificate authority offers no DNS challenge')
    return challenge
  })
  if (challenges.length > 0)
    await publish(await Promise.all(challenges.map((each) => client.getChallengeKeyAuthorization(each))))
  for (const challenge of challenges) await client.completeChallenge(challenge)
  const authorized = await ended(() => client.getAuthorizations(order))
  if (authorized.some(({ status }) => status !== 'valid'))
    throw new AppError('unavailable', refusalOf(failureOf(authorized)))
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const [, request] = await acme.crypto.createCsr({ altNames: [domain] }, pem)
  const finalized = await client.finalizeOrder(order, request)
  const [issued = finalized] = await ended(async () => [await client.getOrder(finalized)])
  if (issued.status !== 'valid') throw new AppError('unavailable', refusalOf(problemOf(issued.error)))
  const chain = await client.getCertificate(issued)
  const { validFrom, validTo } = new X509Certificate(chain)
  return {
    chain,
    privateKey: pem,
    not_before: isoOf(Date.parse(validFrom)),
    not_after: isoOf(Date.parse(validTo)),
  }
}

/** Looks until nothing is in progress. The client's own wait would keep a process that stops running for a minute. */
const ended = async <T extends { readonly status: string }>(look: () => Promise<T[]>): Promise<T[]> => {
  const backoff = new Backoff(LOOKS)
  for (let looks = 1; ; looks++) {
    const seen = await look()
    if (!seen.some(({ status }) => ['pending', 'ready', 'processing'].includes(status))) return seen
    if (looks === MAX_LOOKS)
      throw new AppError('unavailable', 'The certificate authority did not finish the order in time')
    await backoff.pause({ ref: false })
  }
}

/** The reason why the authority did not accept a challenge. */
const failureOf = (authorized: readonly acme.Authorization[]): Problem => {
  const failed = authorized.flatMap(({ challenges }) => challenges).find(({ error }) => error)
  return failed ? problemOf(failed.error) : { detail: 'The challenge was not accepted' }
}

const revoke = async (client: acme.Client, chain: string): Promise<void> => {
  try {
    await client.revokeCertificate(chain)
  } catch (error) {
    if (!isAppError(error) || error.data['kind'] !== 'alreadyRevoked') throw error
  }
}
