import { createSecureContext, type SecureContext } from 'node:tls'
import { BoundedMap } from '../../boundedMap.ts'
import { messageOf } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import { throttled } from '../../loops/throttled.ts'
import type { DomainDoc } from '../../projections/customDomains.ts'
import type { DirectoryDomain } from '../../projections/domainDirectory.ts'
import type { Views } from '../../projections/views.ts'
import { unsealCertificateKey } from '../../secrets/certificateKeys.ts'
import type { Keyring } from '../../secrets/keyring.ts'

/** Certificates in memory; each costs some 50 KiB. */
const KNOWN = 1000

interface Deps {
  readonly views: Pick<Views, 'domains' | 'settled'> & {
    readonly directory: Pick<Views['directory'], 'domains'>
  }
  readonly keyring: Keyring
  readonly logger: Pick<Logger, 'warn'>
}

/**
 * The certificates of the custom domains, for handshakes. The directory knows the newest one of each domain, so a renewed
 * certificate is used from the next handshake on, and that of a deleted domain no longer.
 */
export class ServerCertificates {
  readonly #deps: Deps
  readonly #contexts = new BoundedMap<string, Promise<SecureContext>>(KNOWN)
  readonly #warn: Logger['warn']

  constructor(deps: Deps) {
    this.#deps = deps
    this.#warn = throttled(deps.logger)
  }

  /** Resolves with the context of a name; null for a name without a certificate. Never rejects. */
  async contextOf(servername: string): Promise<SecureContext | null> {
    const known = this.#deps.views.directory.domains.proved(servername.toLowerCase())
    if (!known || known.certificate_id === null) return null
    try {
      return await this.#load(known, known.certificate_id)
    } catch (error) {
      this.#contexts.delete(known.certificate_id)
      const fields = { domain: known.domain, error: messageOf(error) }
      this.#warn('The certificate of a custom domain cannot be used', fields)
      return null
    }
  }

  #load(domain: DirectoryDomain, certificate_id: string): Promise<SecureContext> {
    const loaded = this.#contexts.get(certificate_id) ?? this.#open(domain, certificate_id)
    this.#contexts.set(certificate_id, loaded)
    return loaded
  }

  async #open(domain: DirectoryDomain, certificate_id: string): Promise<SecureContext> {
    const { chain, sealed } = await this.#certificate(domain, certificate_id)
    const key = await unsealCertificateKey(this.#deps.keyring, domain, sealed)
    return createSecureContext({ cert: chain, key })
  }

  /** The read model may not contain the certificate yet that the directory knows. */
  async #certificate(
    { domain_id }: DirectoryDomain,
    certificate_id: string,
  ): Promise<NonNullable<DomainDoc['certificate']>> {
    const { views } = this.#deps
    const read = async () => (await views.domains.get(domain_id))?.certificate
    let stored = await read()
    if (stored?.certificate_id !== certificate_id) {
      await views.settled('domains')
      stored = await read()
    }
    if (!stored) throw new Error('It is not stored any more')
    return stored
  }
}
