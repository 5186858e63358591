import { clock } from '../../clock.ts'
import type { DomainDoc } from '../../projections/customDomains.ts'

type Certificate = NonNullable<DomainDoc['certificate']>

/** The part of its lifetime after which a certificate is renewed. */
const RENEWED_AFTER = 2 / 3

/** The time at which a certificate must be renewed, milliseconds since 1970. */
export const renewalOf = ({ not_before, not_after }: Certificate): number => {
  const [from, to] = [Date.parse(not_before), Date.parse(not_after)]
  return from + (to - from) * RENEWED_AFTER
}

/** Whether there is a certificate that needs no renewal. */
export const isCurrent = (certificate: Certificate | null): boolean =>
  certificate !== null && renewalOf(certificate) > clock.now()
