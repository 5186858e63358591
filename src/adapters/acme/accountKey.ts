import { createECDH, createPrivateKey, hkdfSync } from 'node:crypto'

const CURVE = 'prime256v1'
/** The order of the group of P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
/** 128 bits more than the order has, so that the remainder is as good as uniform (FIPS 186-5, A.2.1). */
const SEED_BYTES = 48

/**
 * The private key of the account at an authority, PEM. It is derived from the root key of the installation: every node has
 * it, it is stored nowhere, and another authority gets another key.
 */
export const accountKeyOf = (rootKey: Uint8Array, directoryUrl: string): string => {
  const seed = Buffer.from(hkdfSync('sha256', rootKey, directoryUrl, 'svc acme account', SEED_BYTES))
  const scalar = (BigInt(`0x${seed.toString('hex')}`) % (ORDER - 1n)) + 1n
  const secret = Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex')
  const curve = createECDH(CURVE)
  curve.setPrivateKey(secret)
  const point = curve.getPublicKey()
  const coordinate = (from: number) => point.subarray(from, from + 32).toString('base64url')
  const d = secret.toString('base64url')
  const jwk = { kty: 'EC', crv: 'P-256', x: coordinate(1), y: coordinate(33), d }
  return createPrivateKey({ key: jwk, format: 'jwk' }).export({ type: 'pkcs8', format: 'pem' }).toString()
}
