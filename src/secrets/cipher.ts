import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto'

const NONCE_BYTES = 12
const authTagLength = 16

/** Encrypts with AES-256-GCM: a random 96-bit nonce, the ciphertext, the tag. Decryption requires the same `bound`. */
export const encrypt = (key: KeyObject, bound: Buffer, bytes: Uint8Array): Buffer => {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength }).setAAD(bound)
  return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
}

/** Decrypts. Throws unless `encrypt` returned these bytes for the same key and `bound`. */
export const decrypt = (key: KeyObject, bound: Buffer, bytes: Buffer): Buffer => {
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), { authTagLength })
  decipher.setAAD(bound).setAuthTag(bytes.subarray(-authTagLength))
  return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -authTagLength)), decipher.final()])
}
