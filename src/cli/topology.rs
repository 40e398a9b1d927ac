//! `mapper topology`: generates, converts, shows, compares and discovers fabrics.

mod difference;
mod discover;
mod planes;
mod selection;
mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mapper_fabric;
use mapper_formats::page;
use mapper_formats::{self as formats, FileFormat};
use mapper_proto::map::Fabric;
use planes::Planes;
use selection::HostSelection;

use super::fabric_argument::{FORMS, FabricArgument, READ};
use super::places::{self, NamedPath};
use super::{CliError, Format, output};

/// The exit status of `diff` if there is a difference.
const EXIT_DIFFERENT: u8 = 3;

/// Options of `mapper topology`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Write the fabric that a spec describes, such as clos:hosts=128,ports=16.
    #[command(after_long_help = SPECS)]
    Generate {
        /// The spec; --help lists the kinds and their keys.
        spec: String,
        #[command(flatten)]
        target: Target,
    },
    /// Write a fabric in another format.
    Convert {
        #[arg(help = READ, value_name = "IN")]
        fabric: FabricArgument,
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        selection: HostSelection,
    },
    /// Print a fabric for a person.
    Show {
        #[arg(help = READ, value_name = "TOPOLOGY")]
        fabric: FabricArgument,
    },
    /// Name each cable that is missing in B, added, or moved; exit status 3 if any.
    ///
    /// Nodes are matched by id, address and tag. Where most of these are in one fabric only, as in a plan and
    /// what was built, they are matched by description, and where that tells few, by structure.
    Diff {
        #[arg(help = format!("The fabric that should be: {FORMS}"))]
        a: FabricArgument,
        #[arg(help = format!("The fabric that is: {FORMS}"))]
        b: FabricArgument,
    },
    /// Explore a fabric of InfiniBand and print it as ibnetdiscover does, or as JSON; nothing in it is changed.
    ///
    /// Any host may do so beside a subnet manager, before any LID is given. What does not answer, or answers
    /// wrongly, is named on standard error by the way to it, and left out.
    Discover(discover::Args),
}

/// Where a fabric is written.
#[derive(Debug, clap::Args)]
struct Target {
    /// The file to write; `-` for standard output.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The format; told by the file's extension if not given (.net, .map, .json, .dot, .svg, .html, .graphml, .csv, .conf and .yaml for Slurm).
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<FileFormat>,
}

/// The help text that lists the specs.
const SPECS: &str = "\
Specs (keys in brackets may be left out):
  clos:hosts=128,ports=16               smallest folded Clos, with as few levels as hold the hosts
  cluster:leaves=24,spines=16,hosts=542[,service=every|spines|none][,missing=5]
      [,cables=2][,uneven=4][,storage=2][,isolated=3][,rails=][,seed=1][,ports=]
                                        leaves and spines with adapters on spines
  xgft:h=3;m=12,12,24;w=1,12,12[;ports=][;service=every] extended generalised fat tree
  irregular:h=3;x=128,64,24;up=3,4;hosts=512[;seed=1][;ports=]
                                        a grown tree: xbars by tier, mean cables up
  torus:x=6,y=5,z=5[,hosts=16][,ports=] one to three dimensions, hosts an xbar
  mesh:x=6,y=5[,hosts=1][,ports=]       a torus that does not close
  ring:n=5[,hosts=1][,ports=]           a torus of one dimension
  hypercube:d=7[,hosts=8][,ports=]
  dragonfly:a=8,p=4,h=4[,groups=][,ports=]
  random:xbars=128,ports=36,hosts=1024,links=600[,seed=1]
  now[:subclusters=3]                   the Berkeley NOW";

/// Runs `mapper topology`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Generate { spec, target } => {
            target.check(&[])?;
            target.write(&mapper_fabric::generate(&spec)?, &spec, format)?;
        }
        Command::Convert { fabric, target, selection } => {
            let selected = selection.of(fabric.load()?)?;
            target.check(&[("IN", fabric.path())])?;
            target.write(&selected, &fabric.title(), format)?;
        }
        Command::Show { fabric } => show(&fabric, format)?,
        Command::Diff { a, b } => return diff(&a, &b, format),
        Command::Discover(args) => discover::run(&args, format)?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Target {
    /// Refuses a file that is read, or that cannot be written.
    fn check(&self, inputs: &[NamedPath<'_>]) -> Result<(), CliError> {
        places::check(&[("--output", &self.output)], inputs)
    }

    /// Writes a fabric, and prints a line about it unless the fabric itself goes to standard output. A page has `title`.
    fn write(&self, fabric: &Fabric, title: &str, format: Format) -> Result<(), CliError> {
        let is_stdout = self.output == Path::new("-");
        let by_name = || FileFormat::of_path(&self.output).or(is_stdout.then_some(FileFormat::Json));
        let file_format = self.to.or_else(by_name).ok_or_else(|| {
            format!(
                "cannot tell the format of {} by its extension; name one with --to, or use .net, .map, .json, \
                 .dot, .svg, .html, .graphml, .csv, or .conf or .yaml (Slurm)",
                self.output.display()
            )
        })?;
        let text = match file_format {
            FileFormat::Html => page::of_fabric(fabric, title),
            _ => formats::write(fabric, file_format),
        };
        if is_stdout {
            return output::print(&text);
        }
        output::write_file(&self.output, &text)?;
        let written = self.output.display().to_string();
        output::print(&match format {
            Format::Text => format!("{written}: {}\n", summary::counts(fabric)),
            Format::Json => format!("{}\n", summary::json(&written, fabric)),
        })
    }
}

fn show(argument: &FabricArgument, format: Format) -> Result<(), CliError> {
    let fabric = argument.load_in_silence()?;
    output::print(&match format {
        Format::Text => {
            let planes = Planes::of(&fabric).map(|planes| planes.text());
            summary::text(&argument.to_string(), &fabric) + &planes.unwrap_or_default()
        }
        Format::Json => {
            let mut json = summary::json(&argument.to_string(), &fabric);
            json["torus"] = Planes::of(&fabric).map_or(serde_json::Value::Null, |planes| planes.json());
            json["map"] = serde_json::to_value(formats::json::fabric_to_json(&fabric))?;
            format!("{json}\n")
        }
    })
}

fn diff(a: &FabricArgument, b: &FabricArgument, format: Format) -> Result<ExitCode, CliError> {
    let difference = difference::between(&a.load()?, &b.load()?);
    output::print(&match format {
        Format::Text => difference.to_string(),
        Format::Json => format!("{}\n", difference.json()),
    })?;
    Ok(if difference.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIFFERENT) })
}
