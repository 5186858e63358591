import { DomainStatus } from '../events/customDomain.ts'
import { envIdOf, type Recorded } from '../events/event.ts'
import type { EventType } from '../events/index.ts'
import type { DomainDoc } from './customDomains.ts'
import { FormerNames } from './formerNames.ts'

/** A custom domain, as far as requests, handshakes and DNS queries need it. */
export interface DirectoryDomain {
  readonly domain_id: string
  readonly domain: string
  readonly env_id: string
  readonly org_id: string
  readonly status: DomainStatus
  /** Id of its newest certificate. */
  readonly certificate_id: string | null
  readonly certificate_expires_at: string | null
  /** Whether the last order of a certificate failed. */
  readonly order_failed: boolean
  /** The values of its TXT record. */
  readonly challenge: readonly string[]
}

/** The statuses of the domains in the directory: a domain leaves it when its deletion begins. */
export const LISTED_STATUSES: readonly DomainStatus[] = DomainStatus.anyOf
  .map((status) => status.const)
  .filter((status) => status !== 'deleting')

export const DOMAIN_TYPES: readonly EventType[] = [
  'DomainRegistered',
  'ChallengePublished',
  'CertificateIssued',
  'CertificateFailed',
  'DomainValidated',
  'DomainRouted',
  'DomainActivated',
  'DomainSuspended',
  'DomainDeleted',
]

/** The part of the directory with the custom domains. Folding a fact twice changes nothing. */
export class DomainDirectory {
  readonly #byId = new Map<string, DirectoryDomain>()
  /** The proved domain of a name: there is at most one. */
  readonly #proved = new Map<string, string>()
  readonly #former = new FormerNames()

  seed(docs: readonly DomainDoc[]): void {
    for (const doc of docs) {
      if (doc.status === 'deleting') continue
      const { domain_id, domain, env_id, org_id, status, certificate, challenge, failure } = doc
      this.#put({
        domain_id,
        domain,
        env_id,
        org_id,
        status,
        certificate_id: certificate?.certificate_id ?? null,
        certificate_expires_at: certificate?.not_after ?? null,
        order_failed: failure !== null,
        challenge,
      })
    }
  }

  all(): Iterable<DirectoryDomain> {
    return this.#byId.values()
  }

  byId(domain_id: string): DirectoryDomain | undefined {
    return this.#byId.get(domain_id)
  }

  /** Returns the proved domain of a name, active or not. */
  proved(domain: string): DirectoryDomain | undefined {
    return this.#byId.get(this.#proved.get(domain) ?? '')
  }

  /** Whether a name was proved once and is not now. Its records may still lead here, and its visitors send their cookies. */
  isFormer(domain: string): boolean {
    return !this.#proved.has(domain) && this.#former.has(domain)
  }

  /** Remembers a name that was proved once; it may be proved now. */
  remember(proved: Pick<DirectoryDomain, 'domain' | 'org_id'>): void {
    this.#former.add(proved)
  }

  apply(recorded: Recorded): void {
    const { event } = recorded
    switch (event.type) {
      case 'DomainRegistered': {
        if (this.#byId.has(event.domain_id)) return
        const { domain_id, domain, org_id } = event
        return this.#put({
          domain_id,
          domain,
          env_id: envIdOf(recorded),
          org_id,
          status: 'pending_validation',
          certificate_id: null,
          certificate_expires_at: null,
          order_failed: false,
          challenge: [],
        })
      }
      case 'ChallengePublished':
        return this.#change(event.domain_id, { challenge: event.values })
      case 'CertificateFailed':
        return this.#change(event.domain_id, { challenge: [], order_failed: true })
      case 'CertificateIssued':
        return this.#change(event.domain_id, {
          certificate_id: event.certificate_id,
          certificate_expires_at: event.not_after,
          order_failed: false,
          challenge: [],
        })
      case 'DomainValidated':
        return this.#change(event.domain_id, { status: 'validated' })
      case 'DomainRouted':
        return this.#change(event.domain_id, { status: 'provisioning' })
      case 'DomainActivated':
        return this.#change(event.domain_id, { status: 'active' })
      case 'DomainSuspended':
        return this.#change(event.domain_id, { status: event.status })
      case 'DomainDeleted':
        this.#change(event.domain_id, { status: 'deleting' })
        this.#byId.delete(event.domain_id)
        return
      default:
    }
  }

  #change(domain_id: string, change: Partial<DirectoryDomain>): void {
    const known = this.#byId.get(domain_id)
    if (known) this.#put({ ...known, ...change })
  }

  #put(entry: DirectoryDomain): void {
    const { domain_id, domain, status } = entry
    this.#byId.set(domain_id, entry)
    if (status !== 'pending_validation' && status !== 'deleting') this.#proved.set(domain, domain_id)
    else if (this.#proved.get(domain) === domain_id) {
      this.#proved.delete(domain)
      this.remember(entry)
    }
  }
}
