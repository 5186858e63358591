import { shownValue } from '../../secrets/shownValue.ts'
import { addressRefusal, decodedPart } from '../shared/addressRefusal.ts'

export interface Address {
  /** `https://host:port`. */
  readonly endPoint: string
  readonly accessKey: string
  readonly secretKey: string
  readonly bucket: string
  readonly region: string
  /** The prefix of every key: empty, or ends in `/`. */
  readonly prefix: string
  /** For messages and logs: host and bucket, without key and secret. */
  readonly place: string
}

const EXAMPLE = 's3://<key>:<secret>@host:port/bucket?region=us-east-1'
const BUCKET = /^[A-Za-z0-9][A-Za-z0-9.-]{1,61}[A-Za-z0-9]$/
/** Keys have up to 900 characters, and S3 allows 1024 with the prefix. */
const PREFIX = /^(?!\.{0,2}(\/|$))[A-Za-z0-9._-]+(\/(?!\.{0,2}(\/|$))[A-Za-z0-9._-]+)*$/
const MAX_PREFIX_LENGTH = 100

/**
 * Parses `s3://KEY:SECRET@host[:port]/bucket[/prefix][?region=us-east-1&tls=false]`; key and secret are URI-encoded,
 * the default port is 443, or 80 without TLS. Throws `bad_request` with the setting and without secrets.
 */
export const parseAddress = (url: string): Address => {
  const refused = addressRefusal('SVC_BLOBS', url)
  const decoded = (text: string): string =>
    decodedPart(text, () => refused('expected key and secret URI-encoded'))
  if (!url.startsWith('s3://') || !URL.canParse(url)) throw refused(`expected ${EXAMPLE}`)
  const { hostname, host, port, username, password, pathname, searchParams } = new URL(url)
  if (hostname === '') throw refused(`expected ${EXAMPLE}`)
  if (port === '0') throw refused('expected a port from 1 to 65535')
  if (username === '' || password === '') throw refused(`expected a key and a secret: ${EXAMPLE}`)
  const [, bucket = '', ...folders] = pathname.replace(/\/$/, '').split('/')
  if (!BUCKET.test(bucket)) throw refused(`expected a bucket: ${EXAMPLE}`)
  const prefix = folders.join('/')
  if (prefix !== '' && (!PREFIX.test(prefix) || prefix.length > MAX_PREFIX_LENGTH)) {
    throw refused(
      `expected a prefix of at most ${MAX_PREFIX_LENGTH} letters, digits, \`_\`, \`.\`, \`-\` and \`/\``,
    )
  }
  const tls = searchParams.get('tls') ?? 'true'
  if (!['true', 'false'].includes(tls))
    throw refused(`expected tls=true or tls=false, not tls=${shownValue(tls)}`)
  return {
    endPoint: `${tls === 'true' ? 'https' : 'http'}://${host}`,
    accessKey: decoded(username),
    secretKey: decoded(password),
    bucket,
    region: searchParams.get('region') ?? 'us-east-1',
    prefix: prefix === '' ? '' : `${prefix}/`,
    place: `bucket ${bucket} at ${host}`,
  }
}
