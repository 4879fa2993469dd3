// `https://jslib.k6.io/totp`: one-time passwords (RFC 6238).
import * as native from "brunt:natives";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** The bytes of a secret in base32 (RFC 4648, section 6). */
function decoded(secret) {
    let bits = 0;
    let held = 0;
    const bytes = [];
    for (const sign of secret.toUpperCase().replace(/[\s=]/g, "")) {
        const value = ALPHABET.indexOf(sign);
        if (value < 0) throw new Error(`TOTP wants a secret in base32, which has no '${sign}'`);
        held = (held << 5) | value;
        bits += 5;
        if (bits < 8) continue;
        bits -= 8;
        bytes.push((held >> bits) & 0xff);
        held &= (1 << bits) - 1;
    }
    return new Uint8Array(bytes).buffer;
}

/** One-time passwords of a secret in base32. */
export class TOTP {
    constructor(secret, digits = 6) {
        this.key = decoded(String(secret));
        this.digits = digits;
    }

    /** The password of now, or of so many steps from now. */
    async gen(timeStep = 30, bias = 0) {
        const counter = new DataView(new ArrayBuffer(8));
        counter.setBigUint64(0, BigInt(Math.floor(Date.now() / 1000 / timeStep) + bias));
        const mac = new DataView(native.hmac("sha1", this.key, counter.buffer));
        const number = mac.getUint32(mac.getUint8(19) & 0xf) & 0x7fffffff;
        return String(number % 10 ** this.digits).padStart(this.digits, "0");
    }

    /** Whether a password is that of now. */
    async verify(code, timeStep = 30) {
        return String(code) === (await this.gen(timeStep));
    }
}

export default { TOTP };
