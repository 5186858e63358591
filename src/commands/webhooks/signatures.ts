import { createHmac, type Hmac, timingSafeEqual } from 'node:crypto'
import { AppError } from '../../errors.ts'
import type { VerifyPreset } from '../../events/project.ts'

/** A signed time may differ from the clock of this node by this much; older requests are replays. */
const TOLERANCE_S = 300
/** Signatures of one header: a provider sends more than one only while a secret is replaced. */
const MAX_SIGNATURES = 16

export type Headers = Readonly<Record<string, string>>

/** The claim of a request about its signature, before its body is known. */
interface Claim {
  /** Signed in front of the body. */
  readonly prefix: string
  readonly signatures: readonly string[]
  readonly encoding: 'hex' | 'base64'
}

/** Checks a signature while the body arrives. */
export interface SignatureCheck {
  update(bytes: Uint8Array): void
  /** Throws `unauthorized` if no signature matches the body. */
  finish(): void
}

/** The parts of a header such as `t=1,v1=abc`. */
const partsOf = (header: string): readonly (readonly [string, string])[] =>
  header.split(',').map((part) => {
    const at = part.indexOf('=')
    return [part.slice(0, at).trim(), part.slice(at + 1).trim()] as const
  })

const presets: Readonly<Record<VerifyPreset, (headers: Headers, now: number) => Claim>> = {
  stripe: (headers, now) => {
    const parts = partsOf(headerOf(headers, 'stripe-signature'))
    const time = parts.find(([name]) => name === 't')?.[1] ?? ''
    checkTime('stripe-signature', time, now)
    const signatures = parts.filter(([name]) => name === 'v1').map(([, value]) => value)
    return { prefix: `${time}.`, signatures, encoding: 'hex' }
  },

  github: (headers) => {
    const header = headerOf(headers, 'x-hub-signature-256')
    return { prefix: '', signatures: [header.replace(/^sha256=/, '')], encoding: 'hex' }
  },

  slack: (headers, now) => {
    const header = headerOf(headers, 'x-slack-signature')
    const time = headerOf(headers, 'x-slack-request-timestamp')
    checkTime('x-slack-request-timestamp', time, now)
    return { prefix: `v0:${time}:`, signatures: [header.replace(/^v0=/, '')], encoding: 'hex' }
  },

  'standard-webhooks': (headers, now) => {
    const id = headerOf(headers, 'webhook-id', 'svix-id')
    const time = headerOf(headers, 'webhook-timestamp', 'svix-timestamp')
    const header = headerOf(headers, 'webhook-signature', 'svix-signature')
    checkTime('webhook-timestamp', time, now)
    const signatures = header.split(' ').flatMap((one) => (one.startsWith('v1,') ? [one.slice(3)] : []))
    return { prefix: `${id}.${time}.`, signatures, encoding: 'base64' }
  },
}

/** Returns the key of the signatures with the secret that the provider shows. Every sender knows an empty key. */
export const keyOf = (preset: VerifyPreset, secret: string): Buffer =>
  preset === 'standard-webhooks' ? Buffer.from(secret.replace(/^whsec_/, ''), 'base64') : Buffer.from(secret)

/**
 * Begins to check the signature of a request by the rules of a provider. `now`: milliseconds since 1970. Throws
 * `unauthorized` if a header is missing or the signed time is too far from `now`.
 */
export const openSignature = (
  preset: VerifyPreset,
  headers: Headers,
  key: Buffer,
  now: number,
): SignatureCheck => {
  const { prefix, signatures, encoding } = presets[preset](headers, now)
  const hmac: Hmac = createHmac('sha256', key).update(prefix)
  return {
    update: (bytes) => void hmac.update(bytes),
    finish: () => {
      const expected = hmac.digest()
      const isValid = signatures.slice(0, MAX_SIGNATURES).some((text) => {
        const given = Buffer.from(text, encoding)
        return given.length === expected.length && timingSafeEqual(given, expected)
      })
      if (!isValid) throw refused('no signature of the request matches its body and the secret')
    },
  }
}

/** The first of the headers that the request has. Header names are in lower case. */
const headerOf = (headers: Headers, ...names: readonly [string, ...string[]]): string => {
  for (const name of names) {
    const value = headers[name]
    if (value !== undefined && value !== '') return value
  }
  throw refused(`the header ${names[0]} is missing`)
}

const checkTime = (header: string, seconds: string, now: number): void => {
  const isTime = /^\d{1,12}$/.test(seconds)
  if (isTime && Math.abs(now / 1000 - Number(seconds)) <= TOLERANCE_S) return
  throw refused(
    isTime
      ? `the time in ${header} differs by more than ${TOLERANCE_S} s from that of the service`
      : `${header} contains no time in seconds`,
  )
}

const refused = (why: string): AppError => new AppError('unauthorized', `The webhook is not verified: ${why}`)
