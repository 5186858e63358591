import { AsyncLocalStorage } from 'node:async_hooks'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import * as acme from 'acme-client'
import { isoOf } from '../../clock.ts'
import { AppError, isAppError, messageOf } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
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

/** Pauses between two looks at an order in progress. */
const LOOKS = { backoffAttempts: 20, backoffMin: 500, backoffMax: 5000 }

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
    account ??= openAccount({ directoryUrl, accountKey, ...LOOKS }, email)
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
  try {
    for (const authorization of open) await client.waitForValidStatus(authorization)
  } catch (error) {
    throw new AppError('unavailable', refusalOf(await failureOf(client, order, error)), { cause: error })
  }
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const [, request] = await acme.crypto.createCsr({ altNames: [domain] }, pem)
  const chain = await client.getCertificate(await client.finalizeOrder(order, request))
  const { validFrom, validTo } = new X509Certificate(chain)
  return {
    chain,
    privateKey: pem,
    not_before: isoOf(Date.parse(validFrom)),
    not_after: isoOf(Date.parse(validTo)),
  }
}

/** The reason why the authority did not accept a challenge. */
const failureOf = async (client: acme.Client, order: acme.Order, error: unknown): Promise<Problem> => {
  const authorizations = await client.getAuthorizations(order)
  const failed = authorizations.flatMap(({ challenges }) => challenges).find((each) => each.error)
  return failed ? problemOf(failed.error) : { detail: messageOf(error) }
}

const revoke = async (client: acme.Client, chain: string): Promise<void> => {
  try {
    await client.revokeCertificate(chain)
  } catch (error) {
    if (!isAppError(error) || error.data['kind'] !== 'alreadyRevoked') throw error
  }
}
