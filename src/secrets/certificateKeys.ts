import type { Keyring } from './keyring.ts'

interface Of {
  readonly env_id: string
  readonly domain_id: string
}

const PURPOSE = 'certificate key'

/** Seals the private key of a certificate for the log, with a data key of the domain that ends with the domain (I6). */
export const sealCertificateKey = (
  keyring: Keyring,
  { env_id, domain_id }: Of,
  privateKey: string,
): Promise<string> => keyring.seal(env_id, PURPOSE, privateKey, domain_id)

/** Unseals a private key. Rejects with `not_found` when its data key was destroyed. */
export const unsealCertificateKey = (
  keyring: Keyring,
  { env_id, domain_id }: Of,
  sealed: string,
): Promise<string> => keyring.unseal(env_id, PURPOSE, sealed, domain_id)

/** The scope of the data key of a domain. */
export const certificateScope = ({ env_id, domain_id }: Of) => ({ env_id, project_id: domain_id })
