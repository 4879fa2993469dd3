const config = await new Promise(() => {});

export default function () {
  console.log(config);
}
