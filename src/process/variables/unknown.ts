import { nearest } from '../../sandbox/nearestName.ts'

/** Variables that other parts read: the command line, and the tests of a checkout. */
const READ_ELSEWHERE = /^SVC_(?:URL|KEY|PROFILE|TEST_\w+|CI_\w+)$/

/** Variables that Kubernetes sets for services whose names begin with `svc`. */
const OF_KUBERNETES = /_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_|$)/
const ADDRESS_OF_KUBERNETES = /^(?:tcp|udp|sctp):\/\//

export interface Unknown {
  readonly name: string
  /** The name that was probably meant. */
  readonly likely: string | undefined
}

/** The variables that begin with `SVC_` in any case, have a value and are not `known`, so they would have no effect. */
export const unknownVariables = (
  env: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): readonly Unknown[] =>
  Object.entries(env)
    .filter(
      ([name, value]) =>
        /^svc_/i.test(name) &&
        !!value &&
        !known.includes(name) &&
        !READ_ELSEWHERE.test(name) &&
        !OF_KUBERNETES.test(name) &&
        !ADDRESS_OF_KUBERNETES.test(value),
    )
    .map(([name]) => ({ name, likely: likelyName(name, known) }))

const likelyName = (name: string, known: readonly string[]): string | undefined =>
  known.find((each) => name.toUpperCase() === `SVC_${each}`) ?? nearest(name, known)
