/** A reference of a function whose slash was not encoded. */
const PLAIN_REFERENCE = /^(\/v1\/functions\/[^/]+\/[^/]+)\/([^/]+)$/

/** The path of a route that was probably meant; undefined if none `isRoute`. */
export const likelyPath = (path: string, isRoute: (path: string) => boolean): string | undefined => {
  const plain = path.replace(/\/{2,}/g, '/').replace(/(?<=[^/])\/$/, '')
  const candidates = [
    plain,
    `/v1${plain}`,
    plain.replace(/^\/api(?=\/)/, ''),
    plain.replace(/^\/api\//, '/v1/'),
    plain.replace(PLAIN_REFERENCE, '$1%2F$2'),
  ]
  return candidates.find((each) => each !== path && isRoute(each))
}
