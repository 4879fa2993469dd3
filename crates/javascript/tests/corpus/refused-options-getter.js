export const options = {
  get iterations() {
    throw new Error('which stage');
  },
};

export default function () {}
